package letterhead.testing.iam;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler;
import software.amazon.msk.auth.iam.internals.AWS4SignedPayloadGenerator;
import software.amazon.msk.auth.iam.internals.AuthenticationRequestParams;

/**
 * Writes requests that AWS's library signs, an object a line: what is signed, the payload of AWS_MSK_IAM, or a token's URL.
 *
 * <p>Its argument is the file to write.
 */
public final class SignedRequests {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String USER_AGENT = "letterhead";
    private static final String[] HOSTS = {
        "b-1.orders.a1b2c3.c2.kafka.us-east-1.amazonaws.com",
        "b-3-public.orders.a1b2c3.c2.kafka.ap-southeast-2.amazonaws.com",
        "boot-x7.c1.kafka-serverless.eu-central-1.amazonaws.com",
        "b-2.orders.a1b2c3.c2.kafka.us-gov-west-1.amazonaws.com",
        "b-1.orders.a1b2c3.c4.kafka.cn-north-1.amazonaws.com.cn",
    };
    private static final AwsCredentials[] CREDENTIALS = {
        AwsBasicCredentials.create("AKIALETTERHEAD", "never/to+be=seen"),
        AwsSessionCredentials.create("ASIALETTERHEAD", "never/to+be=seen", "IQoJb3JpZ2luX2VjE/Zy+w=="),
        AwsSessionCredentials.create("ASIALETTERHEAD", "never~to*be seen", "a~token*of'all(signs)/+=="),
    };

    private SignedRequests() {}

    public static void main(String[] arguments) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String host : HOSTS) {
            for (AwsCredentials credentials : CREDENTIALS) {
                Map<String, Object> payload;
                do { // the seconds until it expires are rounded
                    AuthenticationRequestParams request =
                            AuthenticationRequestParams.create(host, credentials, USER_AGENT);
                    payload = read(new AWS4SignedPayloadGenerator().signedPayload(request));
                } while (!payload.get("x-amz-expires").equals("900"));
                Map<String, Object> line = describe(credentials);
                line.put("host", host);
                line.put("payload", payload);
                lines.add(JSON.writeValueAsString(line));
            }
        }
        for (String region : List.of("us-east-1", "eu-central-1")) {
            System.setProperty("aws.region", region);
            for (AwsCredentials credentials : CREDENTIALS) {
                Map<String, Object> line = describe(credentials);
                line.put("region", region);
                line.put("url", url(credentials));
                lines.add(JSON.writeValueAsString(line));
            }
        }
        Files.write(Path.of(arguments[0]), lines);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> read(byte[] json) throws Exception {
        return JSON.readValue(json, Map.class);
    }

    private static Map<String, Object> describe(AwsCredentials credentials) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("access_key", credentials.accessKeyId());
        line.put("secret_key", credentials.secretAccessKey());
        line.put("token", credentials instanceof AwsSessionCredentials temporary ? temporary.sessionToken() : null);
        return line;
    }

    /** Return the URL of a token for OAUTHBEARER, without the agent, which is not signed and tells of this machine. */
    private static String url(AwsCredentials credentials) throws Exception {
        System.setProperty("aws.accessKeyId", credentials.accessKeyId());
        System.setProperty("aws.secretAccessKey", credentials.secretAccessKey());
        System.clearProperty("aws.sessionToken");
        if (credentials instanceof AwsSessionCredentials temporary) {
            System.setProperty("aws.sessionToken", temporary.sessionToken());
        }
        String url;
        do {
            IAMOAuthBearerLoginCallbackHandler handler = new IAMOAuthBearerLoginCallbackHandler();
            AppConfigurationEntry entry = new AppConfigurationEntry(
                    OAuthBearerLoginModule.class.getName(),
                    AppConfigurationEntry.LoginModuleControlFlag.REQUIRED,
                    Map.of());
            handler.configure(Map.of(), "OAUTHBEARER", List.of(entry));
            OAuthBearerTokenCallback callback = new OAuthBearerTokenCallback();
            handler.handle(new Callback[] {callback});
            url = new String(Base64.getUrlDecoder().decode(callback.token().value()), StandardCharsets.UTF_8);
        } while (!url.contains("X-Amz-Expires=900&"));
        return url.substring(0, url.indexOf("&User-Agent="));
    }
}
