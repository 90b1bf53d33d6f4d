package kube

import (
	"context"
	"errors"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// pageSize is how many objects one answer of Pages holds.
const pageSize = 500

// Pages lists what opts select, a page at a time: each is called with every page
// in list, whose items it may keep. Objects that change between two pages are
// listed as they are in theirs. A kind that the cluster does not know has no
// objects. Errors are *Error; what is said to whom the list is for ("for queue
// x").
func (c *Client) Pages(ctx context.Context, list client.ObjectList, what string, each func() error, opts ...client.ListOption) error {
	next := ""
	for {
		fresh := reflect.New(reflect.TypeOf(list).Elem()) // items that are kept are not written over
		reflect.ValueOf(list).Elem().Set(fresh.Elem())
		err := c.List(ctx, list, append(opts[:len(opts):len(opts)], client.Limit(pageSize), client.Continue(next))...)
		if on := continued(err); on != "" && on != next {
			next = on // too much time between two pages: the rest as it is now
			continue
		}
		if meta.IsNoMatchError(err) || next == "" && apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return &Error{Verb: "listing", Kind: Plural(list), Key: what, Cluster: c.Name, Err: err}
		}
		if err := each(); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// continued is where a list goes on whose earlier pages the server has
// forgotten; "" for every other answer.
func continued(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// Plural is how a list of objects is called in a sentence: JobSets.
func Plural(list client.ObjectList) string {
	gvk, err := apiutil.GVKForObject(list, Scheme)
	if err != nil {
		return "objects"
	}
	kind := strings.TrimSuffix(gvk.Kind, "List")
	if base, ok := strings.CutSuffix(kind, "y"); ok {
		return base + "ies"
	}
	if strings.HasSuffix(kind, "s") {
		return kind + "es"
	}
	return kind + "s"
}
