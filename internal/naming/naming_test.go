package naming

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

var texts = []string{"", "a", "A", "-a", "a-", "a.b", "a_b", "1a", "a b", "a\nb", "ä", "example.com/a", "Example.com/a", "a/b/c", "/a", "a/", "=", "..", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 254)}

// The verdict is Kubernetes' own; the words are not, and name an example.
func TestWords(t *testing.T) {
	for name, tt := range map[string]struct{ ours, theirs func(string) []string }{
		"job": {Job, validation.IsDNS1035Label}, "label": {Label, validation.IsDNS1123Label}, "object": {Object, validation.IsDNS1123Subdomain},
		"value": {LabelValue, validation.IsValidLabelValue}, "key": {Key, validation.IsQualifiedName}, "variable": {Variable, validation.IsEnvVarName},
	} {
		for _, text := range texts {
			got, want := tt.ours(text), tt.theirs(text)
			if (len(got) == 0) != (len(want) == 0) || len(got) > 1 {
				t.Errorf("%s %q: %q, Kubernetes says %q", name, text, got, want)
			}
			for _, problem := range got {
				if strings.ContainsAny(problem, "[(*^") || strings.Contains(problem, "RFC") || strings.Contains(problem, "regex") || !strings.Contains(problem, ", such as ") {
					t.Errorf("%s %q: %s", name, text, problem)
				}
				example, _, _ := strings.Cut(problem[strings.Index(problem, ", such as ")+len(", such as "):], " ")
				if bad := tt.ours(strings.TrimSuffix(example, ",")); len(bad) > 0 {
					t.Errorf("%s: the example %s is none: %s", name, example, bad)
				}
			}
			if len(text) > 63 && name == "value" && !strings.Contains(strings.Join(got, ""), "characters, and 63 is the most") {
				t.Errorf("%s of %d characters: %s", name, len(text), got)
			}
		}
	}
}
