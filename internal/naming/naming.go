// Package naming says which names and texts Kubernetes takes, and of the others
// in words what is wrong with them: the rule, and an example that keeps it. Pure.
package naming

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The lengths that names may have.
const (
	labelLength     = 63
	subdomainLength = 253
)

// Job says what is wrong with the name of a job, or nothing.
func Job(name string) []string {
	return say(validation.IsDNS1035Label(name), name, labelLength,
		"want lowercase letters, digits and dashes, a letter first and no dash last, such as train-2")
}

// Label says what is wrong with the name of a namespace, a volume or a container.
func Label(name string) []string {
	return say(validation.IsDNS1123Label(name), name, labelLength,
		"want lowercase letters, digits and dashes, with no dash first or last, such as team-a")
}

// Object says what is wrong with the name of most other objects.
func Object(name string) []string {
	return say(validation.IsDNS1123Subdomain(name), name, subdomainLength,
		"want lowercase letters, digits, dashes and dots, with a letter or digit at both ends, such as team-a or v5e.spot")
}

// LabelValue says what is wrong with the value of a label.
func LabelValue(value string) []string {
	return say(validation.IsValidLabelValue(value), value, labelLength,
		"want letters, digits, dashes, dots and underscores, with a letter or digit at both ends, such as lr-1e-4")
}

// Key says what is wrong with the key of a label or an annotation.
func Key(key string) []string {
	_, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	}
	return say(validation.IsQualifiedName(key), name, labelLength,
		"want letters, digits, dashes, dots and underscores, with a letter or digit at both ends, such as team, before it perhaps a domain as in example.com/team")
}

// Variable says what is wrong with the name of an environment variable.
func Variable(name string) []string {
	return say(validation.IsEnvVarName(name), name, 0, "want letters, digits, underscores, dashes and dots, no digit first, such as LEARNING_RATE")
}

// say is one problem in our words where Kubernetes has any.
func say(problems []string, text string, length int, rule string) []string {
	switch {
	case len(problems) == 0:
		return nil
	case text == "":
		return []string{"it is empty; " + rule}
	case length > 0 && len(text) > length:
		return []string{fmt.Sprintf("it has %d characters, and %d is the most; %s", len(text), length, rule)}
	}
	return []string{rule}
}
