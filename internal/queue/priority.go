package queue

import (
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
)

// Priority is a level that jobs can have in queues (WorkloadPriorityClass).
type Priority struct {
	Name        string
	Value       int32 // higher goes first
	Description string
}

// maxDescription is Kueue's limit.
const maxDescription = 2048

// Object renders the WorkloadPriorityClass.
func (p Priority) Object() *kueue.WorkloadPriorityClass {
	return &kueue.WorkloadPriorityClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "WorkloadPriorityClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: p.Name, Labels: managed()},
		Value:       p.Value,
		Description: p.Description,
	}
}

// CheckPriorityName says why name cannot name a priority: jobs carry it as the
// value of a label.
func CheckPriorityName(name string) error {
	if err := checkName("priority", name); err != nil {
		return err
	}
	if problems := naming.LabelValue(name); len(problems) > 0 {
		return fmt.Errorf("priority %q: jobs carry the name as a label: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// Validate checks what the CRD would refuse.
func (p Priority) Validate() error {
	if err := CheckPriorityName(p.Name); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(p.Description); n > maxDescription {
		return fmt.Errorf("priority %s: a description of %d characters; Kueue allows %d", p.Name, n, maxDescription)
	}
	return nil
}
