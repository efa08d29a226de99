// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Cluster is an object that stands for a cluster, ready to be matched. The object
// must not be modified while it is.
type Cluster struct {
	name   string
	labels labels.Labels
	claims labels.Labels
	// object is a pointer to a struct or an *unstructured.Unstructured, nil if there
	// is nothing to match.
	object any
}

// New returns the Cluster of a ManagedCluster.
func New(cluster *clusterv1.ManagedCluster) Cluster {
	if cluster == nil {
		return Cluster{}
	}
	return Cluster{
		name:   cluster.Name,
		labels: labels.Set(cluster.Labels),
		claims: (*managedClusterClaims)(cluster),
		object: cluster,
	}
}

// Of returns the Cluster of any object with metadata: a ManagedCluster, a
// ClusterProfile, an unstructured object. Claims are what status.clusterClaims
// or status.properties list by name and value.
func Of(of metav1.Object) (Cluster, error) {
	switch of := of.(type) {
	case *clusterv1.ManagedCluster:
		if of != nil {
			return New(of), nil
		}
	case *unstructured.Unstructured:
		if of != nil {
			return Cluster{name: of.GetName(), labels: namedLabels{root(of)}, claims: namedClaims{root(of)}, object: of}, nil
		}
	default:
		if v := reflect.ValueOf(of); v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			return Cluster{name: of.GetName(), labels: labels.Set(of.GetLabels()), claims: namedClaims{root(of)}, object: of}, nil
		}
	}
	return Cluster{}, fmt.Errorf("a cluster must be a pointer to an object that is not nil, it is a %T", of)
}

// Labels are the labels of the cluster; nil if there is no cluster.
func (c Cluster) Labels() labels.Labels { return c.labels }

// Claims are the claims of the cluster by name, of several with the same name the
// last one; nil if there is no cluster.
func (c Cluster) Claims() labels.Labels { return c.claims }

// managedClusterClaims are the claims of a ManagedCluster. Of several with the
// same name the last one counts.
type managedClusterClaims clusterv1.ManagedCluster

// Lookup returns the value of a claim.
func (m *managedClusterClaims) Lookup(name string) (string, bool) {
	for i := len(m.Status.ClusterClaims) - 1; i >= 0; i-- {
		if claim := &m.Status.ClusterClaims[i]; claim.Name == name {
			return claim.Value, true
		}
	}
	return "", false
}

// Has reports whether there is such a claim.
func (m *managedClusterClaims) Has(name string) bool { _, found := m.Lookup(name); return found }

// Get returns the value of a claim, "" if there is none.
func (m *managedClusterClaims) Get(name string) string { value, _ := m.Lookup(name); return value }

// namedLabels are the labels of an object without Go type: GetLabels would copy
// them.
type namedLabels struct {
	object traits.Mapper
}

// Lookup returns the value of a label.
func (l namedLabels) Lookup(name string) (string, bool) {
	return text(follow(l.object, "metadata", "labels", name))
}

// Has reports whether there is such a label.
func (l namedLabels) Has(name string) bool { _, found := l.Lookup(name); return found }

// Get returns the value of a label, "" if there is none.
func (l namedLabels) Get(name string) string { value, _ := l.Lookup(name); return value }

// namedClaims are the claims of an object of any kind.
type namedClaims struct {
	object traits.Mapper
}

// Lookup returns the value of a claim.
func (c namedClaims) Lookup(name string) (value string, found bool) {
	for _, list := range []string{"properties", "clusterClaims"} {
		claims, ok := follow(c.object, "status", list).(traits.Lister)
		if !ok {
			continue
		}
		for it := claims.Iterator(); it.HasNext() == types.True; {
			claim := it.Next()
			if claimed, ok := text(follow(claim, "name")); ok && claimed == name {
				value, found = text(follow(claim, "value"))
			}
		}
	}
	return value, found
}

// Has reports whether there is such a claim.
func (c namedClaims) Has(name string) bool { _, found := c.Lookup(name); return found }

// Get returns the value of a claim, "" if there is none.
func (c namedClaims) Get(name string) string { value, _ := c.Lookup(name); return value }

// follow goes down a path, to nil if there is nothing.
func follow(value ref.Val, path ...string) ref.Val {
	for _, key := range path {
		m, ok := value.(traits.Mapper)
		if !ok {
			return nil
		}
		if value, ok = m.Find(types.String(key)); !ok {
			return nil
		}
	}
	return value
}

func text(value ref.Val) (string, bool) {
	result, ok := value.(types.String)
	return string(result), ok
}

// input is the variable of one evaluation, and the activation that has it.
type input struct {
	traits.Mapper
	name   string
	scores ScoreFinder
	// now and clock are those of the hub, in seconds and nanoseconds since 1970: there is an
	// input for each evaluation, and a time.Time takes as much as both.
	now, nanos, clock int64
	// managed is the Mapper of a ManagedCluster.
	managed mapping[object]
	// seen is nil until something is looked at that most expressions don't.
	seen *seen
}

// seen is what the expressions have seen besides the cluster. All of them see the same.
type seen struct {
	// now is whether now() was read.
	now    bool
	scores scoresSeen
}

func (i *input) looks() *seen {
	if i.seen == nil {
		i.seen = &seen{}
	}
	return i.seen
}

func newInput(cluster Cluster, hub Hub) *input {
	clock := hub.Clock
	if clock.IsZero() {
		clock = Moment(orNow(hub.Now), DefaultTick)
	}
	result := &input{
		name: cluster.name, scores: hub.Scores,
		now: hub.Now.Unix(), nanos: int64(hub.Now.Nanosecond()), clock: clock.Unix(),
	}
	if of, ok := cluster.object.(*clusterv1.ManagedCluster); ok {
		result.managed = managedCluster(of)
		result.Mapper = &result.managed
	} else {
		result.Mapper = root(cluster.object)
	}
	return result
}

var managedClusterPlan = sync.OnceValue(func() *plan { return planOf(reflect.TypeFor[clusterv1.ManagedCluster]()) })

func managedCluster(of *clusterv1.ManagedCluster) mapping[object] {
	return mapping[object]{object{reflect.ValueOf(of).Elem(), managedClusterPlan()}}
}

// root shows an object whole.
func root(of any) traits.Mapper {
	switch of := of.(type) {
	case *clusterv1.ManagedCluster:
		result := managedCluster(of)
		return &result
	case *unstructured.Unstructured:
		return &mapping[untyped]{of.Object}
	default:
		v := reflect.ValueOf(of).Elem()
		return &mapping[object]{object{v, planOf(v.Type())}}
	}
}

// ResolveName knows the cluster and the time.
func (i *input) ResolveName(name string) (any, bool) {
	switch name {
	case clusterVariable:
		return i, true
	case nowVariable:
		i.looks().now = true
		return types.Timestamp{Time: time.Unix(i.clock, 0).UTC()}, true
	default:
		return nil, false
	}
}

// hub is what the input was made from, but for the clock.
func (i *input) hub() Hub { return Hub{Scores: i.scores, Now: time.Unix(i.now, i.nanos).UTC()} }

// timed reports whether an expression has read now().
func (i *input) timed() bool { return i.seen != nil && i.seen.now }

// Parent returns nil: there is none.
func (i *input) Parent() celgo.Activation { return nil }
