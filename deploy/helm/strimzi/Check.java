import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.introspect.Annotated;
import com.fasterxml.jackson.databind.introspect.JacksonAnnotationIntrospector;
import io.strimzi.api.kafka.model.topic.KafkaTopic;
import io.strimzi.api.kafka.model.user.KafkaUser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Reads manifests by Strimzi's own classes, a JSON object a line, and answers each by a line: what is wrong, or nothing.
 *
 * <p>A field that Strimzi does not know is refused. A value that it does not know becomes null in its classes, so what
 * was read is compared with what was given.
 */
final class Check {
    private static final Map<String, Class<?>> KINDS =
        Map.of("KafkaTopic", KafkaTopic.class, "KafkaUser", KafkaUser.class);

    /** Strimzi's classes, but they collect no fields that they do not know, and write each that they do. */
    private static final class Strict extends JacksonAnnotationIntrospector {
        @Override
        public Boolean hasAnySetter(Annotated annotated) {
            return false;
        }

        @Override
        public JsonInclude.Value findPropertyInclusion(Annotated annotated) {
            return JsonInclude.Value.construct(JsonInclude.Include.ALWAYS, JsonInclude.Include.ALWAYS);
        }
    }

    public static void main(String[] words) throws Exception {
        var strict = new ObjectMapper()
            .setAnnotationIntrospector(new Strict())
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(mistake(strict, strict.readTree(line)));
        }
    }

    private static String mistake(ObjectMapper strict, JsonNode given) {
        var kind = KINDS.get(given.path("kind").asText());
        if (kind == null) {
            return "no class for this kind";
        }
        try {
            return lost("", given, strict.valueToTree(strict.treeToValue(given, kind)));
        } catch (Exception error) {
            return error.getMessage().lines().findFirst().orElse("cannot be read");
        }
    }

    /** Where what was given is not what was read; empty where all of it was. */
    private static String lost(String path, JsonNode given, JsonNode read) {
        if (!given.isContainerNode()) {
            var same = !read.isMissingNode() && given.asText().equals(read.asText());
            return same ? "" : path + ": " + given + " is read as " + (read.isMissingNode() ? "nothing" : read);
        }
        for (var at = 0; given.isArray() && at < given.size(); at++) {
            var told = lost(path + "[" + at + "]", given.get(at), read.path(at));
            if (!told.isEmpty()) {
                return told;
            }
        }
        for (var each : given.properties()) {
            var told = lost(path + "." + each.getKey(), each.getValue(), read.path(each.getKey()));
            if (!told.isEmpty()) {
                return told;
            }
        }
        return "";
    }
}
