package letterhead.testing.broker;

import no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt;

/**
 * An identity provider that stops when its standard input ends.
 *
 * <p>Its settings are environment variables: {@code SERVER_HOSTNAME}, {@code SERVER_PORT} and {@code JSON_CONFIG}.
 */
public final class Identity {
    private Identity() {}

    public static void main(String[] arguments) {
        Attached.stopAtTheEndOfInput();
        StandaloneMockOAuth2ServerKt.main();
    }
}
