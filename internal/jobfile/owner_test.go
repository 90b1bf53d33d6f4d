package jobfile

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestOwnerOf(t *testing.T) {
	for account, want := range map[string]string{
		"ada@example.com":                        "ada-example.com",
		"system:serviceaccount:research:bot":     "system-serviceaccount-research-bot",
		"":                                       "",
		"@@":                                     "",
		"ÄÖ":                                     "",
		"_ada_":                                  "ada",
		strings.Repeat("a", 62) + "@example.com": strings.Repeat("a", 62),
		strings.Repeat("a", 70):                  strings.Repeat("a", 63),
		"principal://iam.googleapis.com/subject/ada": "principal---iam.googleapis.com-subject-ada",
	} {
		got := OwnerOf(account)
		if got != want {
			t.Errorf("%q is %q, want %q", account, got, want)
		}
		if problems := validation.IsValidLabelValue(got); len(problems) > 0 {
			t.Errorf("%q: %v", got, problems)
		}
	}
}
