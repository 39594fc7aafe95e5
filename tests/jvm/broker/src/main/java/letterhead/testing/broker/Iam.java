package letterhead.testing.broker;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.Provider;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslServer;
import javax.security.sasl.SaslServerFactory;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SecurityProviderCreator;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Logins with IAM as brokers of MSK accept them: the mechanism AWS_MSK_IAM, and tokens for OAUTHBEARER.
 *
 * <p>Both are a request that is signed with version 4 of AWS's signatures. There is no AWS here, so one long-term key and
 * one temporary key are known, and the signature is computed with the JDK alone.
 */
public final class Iam implements SecurityProviderCreator {
    static final String HOST = "127.0.0.1";
    static final String REGION = "eu-central-1";
    static final String SESSION_TOKEN = "session/token+of=a role";
    static final Map<String, String> SECRETS =
            Map.of("AKIALETTERHEAD", "never-to-be-seen/1", "ASIALETTERHEAD", "never-to-be-seen/2");

    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);

    @Override
    public Provider getProvider() {
        Provider provider = new Provider("letterhead-iam", "1", "AWS_MSK_IAM") {};
        provider.put("SaslServerFactory.AWS_MSK_IAM", Factory.class.getName());
        return provider;
    }

    /** Return the access key of a signed request; throw an exception if it is not what MSK accepts. */
    static String verify(Map<String, String> parameters, String host) {
        TreeMap<String, String> signed = new TreeMap<>(parameters);
        String signature = signed.remove("X-Amz-Signature");
        String[] scope = signed.getOrDefault("X-Amz-Credential", "").split("/", 2);
        check(scope.length == 2 && SECRETS.containsKey(scope[0]), "unknown access key");
        Instant time = Instant.from(TIME.parse(signed.get("X-Amz-Date")));
        String day = signed.get("X-Amz-Date").substring(0, 8);
        check(scope[1].equals(day + "/" + REGION + "/kafka-cluster/aws4_request"), "wrong scope " + scope[1]);
        check(signed.get("Action").equals("kafka-cluster:Connect"), "wrong action");
        check(signed.get("X-Amz-Algorithm").equals("AWS4-HMAC-SHA256"), "wrong algorithm");
        check(signed.get("X-Amz-SignedHeaders").equals("host"), "the host is not signed");
        boolean isTemporary = scope[0].startsWith("ASIA");
        check(!isTemporary || SESSION_TOKEN.equals(signed.get("X-Amz-Security-Token")), "wrong session token");
        Duration age = Duration.between(time, Instant.now());
        long lifetime = Long.parseLong(signed.get("X-Amz-Expires"));
        check(lifetime <= 900 && age.toSeconds() <= lifetime && age.toMinutes() > -5, "the signature has expired");
        String query = signed.entrySet().stream()
                .map(entry -> encoded(entry.getKey()) + "=" + encoded(entry.getValue()))
                .collect(Collectors.joining("&"));
        String request = String.join("\n", "GET", "/", query, "host:" + host, "", "host", sha256(""));
        String text = String.join("\n", "AWS4-HMAC-SHA256", signed.get("X-Amz-Date"), scope[1], sha256(request));
        byte[] key = ("AWS4" + SECRETS.get(scope[0])).getBytes(StandardCharsets.UTF_8);
        for (String part : scope[1].split("/")) {
            key = hmac(key, part);
        }
        check(HexFormat.of().formatHex(hmac(key, text)).equals(signature), "the signature does not match");
        return scope[0];
    }

    private static void check(boolean condition, String problem) {
        if (!condition) {
            throw new SaslAuthenticationException("Access denied: " + problem);
        }
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    private static String sha256(String text) {
        try {
            return HexFormat.of()
                    .formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static byte[] hmac(byte[] key, String text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Makes servers of the mechanism. */
    public static final class Factory implements SaslServerFactory {
        @Override
        public SaslServer createSaslServer(
                String mechanism, String protocol, String host, Map<String, ?> settings, CallbackHandler handler) {
            return new Server();
        }

        @Override
        public String[] getMechanismNames(Map<String, ?> settings) {
            return new String[] {"AWS_MSK_IAM"};
        }
    }

    private static final class Server implements SaslServer {
        private static final Map<String, String> NAMES = List.of(
                        "Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
                        "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders")
                .stream()
                .collect(Collectors.toMap(String::toLowerCase, name -> name));

        private String accessKey;

        @Override
        public String getMechanismName() {
            return "AWS_MSK_IAM";
        }

        @Override
        @SuppressWarnings("unchecked")
        public byte[] evaluateResponse(byte[] response) {
            try {
                Map<String, String> payload = new ObjectMapper().readValue(response, Map.class);
                check("2020_10_22".equals(payload.remove("version")), "wrong version");
                check(payload.remove("user-agent") != null, "no user agent");
                check(HOST.equals(payload.remove("host")), "the host is not that of the broker");
                TreeMap<String, String> parameters = new TreeMap<>();
                payload.forEach((name, value) -> parameters.put(NAMES.getOrDefault(name, name), value));
                accessKey = verify(parameters, HOST);
                return "{\"version\":\"2020_10_22\",\"request-id\":\"1\"}".getBytes(StandardCharsets.UTF_8);
            } catch (java.io.IOException error) {
                throw new SaslAuthenticationException("Access denied: no JSON");
            }
        }

        @Override
        public boolean isComplete() {
            return accessKey != null;
        }

        @Override
        public String getAuthorizationID() {
            return accessKey;
        }

        @Override
        public byte[] unwrap(byte[] incoming, int offset, int length) {
            throw new IllegalStateException();
        }

        @Override
        public byte[] wrap(byte[] outgoing, int offset, int length) {
            throw new IllegalStateException();
        }

        @Override
        public Object getNegotiatedProperty(String name) {
            return null;
        }

        @Override
        public void dispose() {}
    }

    /** Verifies tokens of OAUTHBEARER, each a signed URL. */
    public static final class Tokens implements AuthenticateCallbackHandler {
        @Override
        public void configure(Map<String, ?> settings, String mechanism, List<AppConfigurationEntry> entries) {}

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (!(callback instanceof OAuthBearerValidatorCallback validator)) {
                    throw new UnsupportedCallbackException(callback);
                }
                URI url = URI.create(
                        new String(Base64.getUrlDecoder().decode(validator.tokenValue()), StandardCharsets.UTF_8));
                TreeMap<String, String> parameters = new TreeMap<>();
                for (String pair : url.getRawQuery().split("&")) {
                    String[] parts = pair.split("=", 2);
                    parameters.put(parts[0], URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
                }
                check(parameters.remove("User-Agent") != null, "no user agent");
                check(url.getHost().equals("kafka." + REGION + ".amazonaws.com"), "wrong host");
                String accessKey = verify(parameters, url.getHost());
                validator.token(new Token(validator.tokenValue(), accessKey));
            }
        }

        @Override
        public void close() {}
    }

    private record Token(String value, String principalName) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return Instant.now().plusSeconds(900).toEpochMilli();
        }

        @Override
        public Long startTimeMs() {
            return null;
        }
    }
}
