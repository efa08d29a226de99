// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placements decides Placements of Open Cluster Management over the objects of a hub or of files, as celset-placement
// would. It writes nothing.
//
//	hub, err := placements.ReadHub(ctx, listers, "default", nil)    // or placements.FromDocuments(documents, namespace)
//	object, err := hub.Placement("web", "default")
//	answer, err := hub.Decide(ctx, object, time.Now(), placements.Options{})
//	answer.Print(os.Stdout)
package placements

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/report"
)

// Hub holds the objects of a hub that determine the decisions of Placements.
type Hub struct {
	placements []*clusterv1beta1.Placement
	clusters   []*clusterv1.ManagedCluster
	sets       []*clusterv1beta2.ManagedClusterSet
	bindings   []*clusterv1beta2.ManagedClusterSetBinding
	decisions  []*clusterv1beta1.PlacementDecision
	scores     map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore
	// scoreNames maps a namespace to the names of its AddOnPlacementScores.
	scoreNames map[string][]string
	// Warnings name objects that can't be read or decoded.
	Warnings []string
	// read is the number of objects that were read from the hub, for the progress display.
	read int
}

func newHub() *Hub {
	return &Hub{scores: map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore{}, scoreNames: map[string][]string{}}
}

// Uses reports whether decisions depend on objects of a kind.
func Uses(kind schema.GroupVersionKind) bool { return kinds[kind] != "" }

// kinds maps each kind that decisions depend on to its resource name.
var kinds = map[schema.GroupVersionKind]string{
	schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"):                "managedclusters",
	schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind("ManagedClusterSet"):        "managedclustersets",
	schema.GroupVersion(clusterv1beta2.GroupVersion).WithKind("ManagedClusterSetBinding"): "managedclustersetbindings",
	schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("AddOnPlacementScore"):     "addonplacementscores",
	schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"):                "placements",
	schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("PlacementDecision"):        "placementdecisions",
}

// Resources returns the resources that [ReadHub] lists. The value is true for resources whose objects in one namespace are
// enough. Scores are namespaced, too, but decisions depend on the scores in all namespaces.
func Resources() map[schema.GroupVersionResource]bool {
	resources := map[schema.GroupVersionResource]bool{}
	for kind, resource := range kinds {
		resources[kind.GroupVersion().WithResource(resource)] = kind.Kind == "Placement" || kind.Kind == "PlacementDecision" || kind.Kind == "ManagedClusterSetBinding"
	}
	return resources
}

// maxObjects is the page size of list requests.
const maxObjects = 500

// Lister lists objects of one resource. The dynamic client of client-go has Listers.
type Lister interface {
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// ReadHub reads the Placements of one namespace, and all objects that their decisions depend on. If the caller may not read a
// kind, or an object can't be decoded, ReadHub adds a warning and continues. But it fails if the caller may not read
// ManagedClusters. If progress is not nil, ReadHub calls it with the number of objects read so far. of returns the Lister for a
// resource, in one namespace or in all namespaces.
func ReadHub(ctx context.Context, of func(resource schema.GroupVersionResource, namespace string) Lister, namespace string, progress func(objects int)) (*Hub, error) {
	if progress == nil {
		progress = func(int) {}
	}
	hub := newHub()
	for kind, resource := range kinds {
		in := metav1.NamespaceAll
		if kind.Kind == "Placement" || kind.Kind == "ManagedClusterSetBinding" {
			in = namespace
		}
		err := hub.readAll(ctx, of(kind.GroupVersion().WithResource(resource), in), progress)
		if apierrors.IsForbidden(err) && kind.Kind != "ManagedCluster" {
			hub.Warnings = append(hub.Warnings, err.Error())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
	}
	hub.sort()
	return hub, nil
}

func (h *Hub) readAll(ctx context.Context, reader Lister, progress func(int)) error {
	options := metav1.ListOptions{Limit: maxObjects}
	for {
		list, err := reader.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			h.add(&list.Items[i])
		}
		h.read += len(list.Items)
		progress(h.read)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// FromDocuments takes from files the objects that decisions depend on. An object without a namespace gets the given namespace.
// A Placement gets the defaults that the API server would set.
func FromDocuments(documents []clusterstate.Document, namespace string) (*Hub, error) {
	hub := newHub()
	for _, document := range documents {
		if err := hub.addDocument(document, namespace); err != nil {
			return nil, err
		}
	}
	hub.sort()
	return hub, nil
}

// addDocument adds the object of a document if decisions depend on its kind.
func (h *Hub) addDocument(document clusterstate.Document, namespace string) error {
	object := document.Object
	if !Uses(object.GroupVersionKind()) {
		return nil
	}
	switch object.GetKind() {
	case "Placement", "PlacementDecision", "ManagedClusterSetBinding", "AddOnPlacementScore":
		object.SetNamespace(cmp.Or(object.GetNamespace(), namespace))
	}
	if err := h.decode(object, true); err != nil {
		return fmt.Errorf("%s: %s %s: %w", document.Source, object.GetKind(), object.GetName(), err)
	}
	return nil
}

// add adds an object. If the object can't be decoded, add warns and ignores it, as celset-placement does.
func (h *Hub) add(object *unstructured.Unstructured) {
	if err := h.decode(object, false); err != nil {
		h.Warnings = append(h.Warnings, fmt.Sprintf("%s %s is left out: %v", object.GetKind(), klog.KObj(object), err))
	}
}

// decode adds an object to the hub. If strictly is set, an unknown field is an error.
func (h *Hub) decode(object *unstructured.Unstructured, strictly bool) error {
	switch object.GetKind() {
	case "ManagedCluster":
		return keep(&h.clusters, object, strictly)
	case "ManagedClusterSet":
		return keep(&h.sets, object, strictly)
	case "ManagedClusterSetBinding":
		return keep(&h.bindings, object, strictly)
	case "PlacementDecision":
		return keep(&h.decisions, object, strictly)
	case "AddOnPlacementScore":
		var one []*clusterv1alpha1.AddOnPlacementScore
		err := keep(&one, object, strictly)
		for _, score := range one {
			h.scores[types.NamespacedName{Namespace: score.Namespace, Name: score.Name}] = score
			h.scoreNames[score.Namespace] = append(h.scoreNames[score.Namespace], score.Name)
		}
		return err
	}
	if err := keep(&h.placements, object, strictly); err != nil {
		return err
	}
	body, err := yaml.Marshal(object.Object)
	report.SetDefaults(h.placements[len(h.placements)-1], body)
	return err
}

func keep[T any](into *[]*T, object *unstructured.Unstructured, strictly bool) error {
	decoded := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, decoded, strictly); err != nil {
		return err
	}
	*into = append(*into, decoded)
	return nil
}

// Overlay returns the union of h and other. If both have an object with the same name, the result has the object of other.
func (h *Hub) Overlay(other *Hub) *Hub {
	result := newHub()
	result.placements = clusterstate.Overlay(h.placements, other.placements)
	result.clusters = clusterstate.Overlay(h.clusters, other.clusters)
	result.sets = clusterstate.Overlay(h.sets, other.sets)
	result.bindings = clusterstate.Overlay(h.bindings, other.bindings)
	result.decisions = clusterstate.Overlay(h.decisions, other.decisions)
	for _, from := range []*Hub{h, other} {
		for name, score := range from.scores {
			if result.scores[name] == nil {
				result.scoreNames[name.Namespace] = append(result.scoreNames[name.Namespace], name.Name)
			}
			result.scores[name] = score
		}
	}
	for _, names := range result.scoreNames {
		slices.Sort(names)
	}
	return result
}

func (h *Hub) sort() {
	slices.SortFunc(h.placements, func(a, b *clusterv1beta1.Placement) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(h.clusters, func(a, b *clusterv1.ManagedCluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(h.Warnings)
}

// Placement returns the Placement with a name. If the name is empty, it returns the only Placement.
func (h *Hub) Placement(name, namespace string) (*clusterv1beta1.Placement, error) {
	if name == "" && len(h.placements) == 1 {
		return h.placements[0], nil
	}
	if name == "" {
		return nil, fmt.Errorf("there are %d Placements: name one of them as placement/NAME", len(h.placements))
	}
	for _, object := range h.placements {
		if object.Name == name && object.Namespace == namespace {
			return object, nil
		}
	}
	return nil, fmt.Errorf("there is no Placement %q in namespace %q", name, namespace)
}

// Selected returns the number of clusters in the Placement's existing PlacementDecisions.
func (h *Hub) Selected(object *clusterv1beta1.Placement) int { return len(h.former(object)) }

// Placements returns the Placements that were read.
func (h *Hub) Placements() []*clusterv1beta1.Placement { return h.placements }

func (h *Hub) snapshot() *placement.Snapshot {
	return &placement.Snapshot{
		Clusters: h.clusters, ClusterSets: h.sets, Bindings: h.bindings, Decisions: placement.NewDecisions(h.decisions...),
		Scores: h,
	}
}

// FindScore implements [cluster.ScoreFinder].
func (h *Hub) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return h.scores[types.NamespacedName{Namespace: namespace, Name: name}], nil
}

// ScoreNames implements [placement.ScoreNamer].
func (h *Hub) ScoreNames(namespace string) []string { return h.scoreNames[namespace] }

// Clusters returns the number of clusters that were read.
func (h *Hub) Clusters() int { return len(h.clusters) }
