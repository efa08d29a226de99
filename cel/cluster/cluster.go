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

// Cluster is an object that represents a cluster, prepared for matching. The object must not be modified while the Cluster is in
// use.
type Cluster struct {
	name   string
	labels labels.Labels
	claims labels.Labels
	// object is a pointer to a struct or an *unstructured.Unstructured. It is nil for the zero Cluster.
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

// Of returns the Cluster of an object with metadata, such as a ManagedCluster, a ClusterProfile or an unstructured object. Its
// claims are the names and values in status.clusterClaims or status.properties.
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

// Labels returns the labels of the cluster, or nil for the zero Cluster.
func (c Cluster) Labels() labels.Labels { return c.labels }

// Claims returns the claims of the cluster by name, or nil for the zero Cluster. If several claims have the same name, the last
// one counts.
func (c Cluster) Claims() labels.Labels { return c.claims }

// managedClusterClaims are the claims of a ManagedCluster. If several claims have the same name, the last one counts.
type managedClusterClaims clusterv1.ManagedCluster

// Lookup returns the value of a claim. found is false if the claim does not exist.
func (m *managedClusterClaims) Lookup(name string) (string, bool) {
	for i := len(m.Status.ClusterClaims) - 1; i >= 0; i-- {
		if claim := &m.Status.ClusterClaims[i]; claim.Name == name {
			return claim.Value, true
		}
	}
	return "", false
}

// Has reports whether the claim exists.
func (m *managedClusterClaims) Has(name string) bool { _, found := m.Lookup(name); return found }

// Get returns the value of a claim, or "".
func (m *managedClusterClaims) Get(name string) string { value, _ := m.Lookup(name); return value }

// namedLabels are the labels of an unstructured object, read without the copy that GetLabels makes.
type namedLabels struct {
	object traits.Mapper
}

// Lookup returns the value of a label, and false if the label does not exist.
func (l namedLabels) Lookup(name string) (string, bool) {
	return text(follow(l.object, "metadata", "labels", name))
}

// Has reports whether the label exists.
func (l namedLabels) Has(name string) bool { _, found := l.Lookup(name); return found }

// Get returns the value of a label, or "".
func (l namedLabels) Get(name string) string { value, _ := l.Lookup(name); return value }

// namedClaims are the claims of an object of any kind.
type namedClaims struct {
	object traits.Mapper
}

// Lookup returns the value of a claim. found is false if the claim does not exist.
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

// Has reports whether the claim exists.
func (c namedClaims) Has(name string) bool { _, found := c.Lookup(name); return found }

// Get returns the value of a claim, or "".
func (c namedClaims) Get(name string) string { value, _ := c.Lookup(name); return value }

// follow returns the value at a path of keys in a CEL value, or nil if there is no such value.
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

// input is the cluster as a CEL value, and also the activation of one evaluation.
type input struct {
	traits.Mapper
	name   string
	scores ScoreFinder
	// now and clock are the fields Now and Clock of the Hub, in seconds since 1970. nanos has the nanoseconds of now. They are
	// ints, because each evaluation allocates an input, and a value of type time.Time takes 24 bytes.
	now, nanos, clock int64
	// managed is the map of fields if the cluster is a ManagedCluster.
	managed mapping[object]
	// seen is allocated when an expression first reads the time or scores. Most expressions read neither.
	seen *readData
}

// readData stores data other than the cluster that expressions have read, so that all expressions on the cluster read the same
// data.
type readData struct {
	// now is true if an expression has read now().
	now    bool
	scores scoresSeen
}

func (i *input) looks() *readData {
	if i.seen == nil {
		i.seen = &readData{}
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

// root returns the CEL map of a whole object.
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

// ResolveName returns the value of the cluster variable or of now().
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

// hub returns the Scores and the time of the Hub that the input was made from, without Clock.
func (i *input) hub() Hub { return Hub{Scores: i.scores, Now: time.Unix(i.now, i.nanos).UTC()} }

// timed reports whether an expression has read now().
func (i *input) timed() bool { return i.seen != nil && i.seen.now }

// Parent returns nil.
func (i *input) Parent() celgo.Activation { return nil }
