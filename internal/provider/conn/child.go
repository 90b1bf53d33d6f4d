package conn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Child is embedded by resources that live inside a cluster. It keeps the
// provider's Data and tells a cluster that is gone from one that cannot be
// reached.
type Child struct {
	Data *Data
}

// Configure takes the provider's Data over.
func (c *Child) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	c.Data = From(req.ProviderData, &resp.Diagnostics)
}

// Reach returns a client of the cluster. gone is true, without an error, when
// the cluster does not exist: then neither does anything in it.
func (c *Child) Reach(ctx context.Context, cluster string) (k *kube.Client, gone bool, err error) {
	if c.Data == nil {
		return nil, false, errors.New("the provider is not configured")
	}
	k, err = c.Data.Cluster(ctx, cluster)
	if errors.Is(err, gke.NotFound) {
		return nil, true, nil
	}
	return k, false, err
}

// MustReach is Reach for whoever is about to write: a cluster that does not
// exist is an error.
func (c *Child) MustReach(ctx context.Context, cluster string) (*kube.Client, error) {
	k, gone, err := c.Reach(ctx, cluster)
	if gone {
		return nil, fmt.Errorf("cluster %s does not exist. Make it first (tpu_training_cluster) and refer to its id, or correct the name: gcloud container clusters list", cluster)
	}
	return k, err
}

// NeedsControllers says what to do when the cluster does not know the kind of
// an object: JobSet or Kueue is not installed. Other errors stay as they are.
func NeedsControllers(err error) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return fmt.Errorf("%w\nJobSet and Kueue, or some of their definitions, are not installed on the cluster. Add a tpu_job_controllers for it, "+
		"or apply the one that there is again, and refer to it (cluster = tpu_job_controllers.NAME.cluster, or depends_on) so that it is installed first", err)
}

// Owner is the configuration's name, or "".
func (c *Child) Owner() string {
	if c.Data == nil {
		return ""
	}
	return c.Data.Owner
}

// Claim makes sure that obj may be created: nothing has its name, or only what
// an interrupted apply of this configuration left, which is then taken over
// (adopted). What has the name but is being deleted is waited for, as long as
// ctx lasts. Anybody else's object is an error that names the import command.
// obj is stamped with this configuration's name.
func (c *Child) Claim(ctx context.Context, k *kube.Client, obj client.Object, typeName, id string) (adopted bool, err error) {
	c.Stamp(obj)
	had := obj.DeepCopyObject().(client.Object)
	found, err := k.Fetch(ctx, had)
	if err == nil && found && had.GetDeletionTimestamp() != nil {
		err = k.Until(ctx, had, func(there bool) (bool, error) {
			found = there
			return !there || had.GetDeletionTimestamp() == nil, nil
		})
		if err != nil {
			return false, fmt.Errorf("%w\nThe one that had this name before is still being deleted; apply again when it is gone", err)
		}
	}
	if err != nil || !found {
		return false, err
	}
	labels := had.GetLabels()
	if labels[queue.LabelManagedBy] == queue.ManagedBy && labels[training.LabelOwner] == c.Owner() {
		return true, nil
	}
	return false, fmt.Errorf("cluster %s already has %s %s, which this configuration did not make. "+
		"To manage it here, import it:\n  terraform import %s.NAME %s", k.Name, had.GetObjectKind().GroupVersionKind().Kind, had.GetName(), typeName, id)
}

// Stamp writes the configuration's name on obj.
func (c *Child) Stamp(obj client.Object) {
	if c.Owner() == "" {
		return
	}
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[training.LabelOwner] = c.Owner()
	obj.SetLabels(labels)
}

// ApplyRetry is kube's Apply, again and again while the answer is one that
// passes by itself (a webhook that is starting), for at most a minute. It takes
// over fields that somebody changed by hand: the object is ours (see Claim),
// and the plan has shown the change back. With whole it also removes those that
// somebody added.
func ApplyRetry(ctx context.Context, k *kube.Client, obj client.Object, whole bool) error {
	limit := time.Now().Add(time.Minute)
	var last error
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 4*time.Second) {
		try := obj.DeepCopyObject().(client.Object)
		err := k.Apply(ctx, try, kube.ApplyOptions{Force: true, Whole: whole})
		if err != nil && last != nil && (ctx.Err() != nil || !answered(err) && !kube.Transient(err)) {
			return last // the time is over: what was answered before says more
		}
		last = err
		if err == nil || !kube.Transient(err) || time.Now().Add(wait).After(limit) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// answered tells whether err is what an API server said.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// ParseID splits the id of an object inside a cluster:
// ParseID("projects/.../clusters/c/namespaces/n/jobsets/j", "namespaces", "jobsets")
// returns the cluster's path and [n j].
func ParseID(id string, collections ...string) (cluster string, names []string, err error) {
	want := "projects/PROJECT/locations/LOCATION/clusters/CLUSTER"
	for _, c := range collections {
		want += "/" + c + "/NAME"
	}
	bad := fmt.Errorf("%q is not the id of such an object: want %s", id, want)
	parts := strings.Split(id, "/")
	if len(parts) != 6+2*len(collections) {
		return "", nil, bad
	}
	name, err := gke.ParseClusterName(strings.Join(parts[:6], "/"))
	if err != nil {
		return "", nil, bad
	}
	for i, c := range collections {
		if parts[6+2*i] != c || parts[7+2*i] == "" {
			return "", nil, bad
		}
		names = append(names, parts[7+2*i])
	}
	return name.String(), names, nil
}
