package conn

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// interrupted tells whether err is the end of a call because the user asked
// Terraform to stop (Ctrl-C). A timeout is not.
func interrupted(err error) bool { return errors.Is(err, context.Canceled) }

// AddError appends err with the summary; kube and gke errors say the rest. An
// interrupt is no failure of the cluster, and says how to go on.
func AddError(diags *diag.Diagnostics, summary string, err error) {
	if interrupted(err) {
		diags.AddError(summary, "Interrupted. What Kubernetes was asked to do already goes on by itself; run the same command again to continue.")
		return
	}
	diags.AddError(summary, err.Error())
}

// AddDeleteError is AddError for a deletion of what ("namespace research").
// Kubernetes deletes in the background: an interrupt ends only the wait.
func AddDeleteError(diags *diag.Diagnostics, what string, err error) {
	if interrupted(err) {
		diags.AddError("Interrupted while deleting "+what,
			"The deletion goes on in Kubernetes, as far as it was asked for already. Run terraform destroy (or apply) again to see it through.")
		return
	}
	diags.AddError("Cannot delete "+what, err.Error())
}
