// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/podclaims"
	"github.com/celset/celset/apis/nearest"
)

// Subject is what one asks about: a pod with its claims, or a claim.
type Subject struct {
	// Pod is nil if the question is about a claim.
	Pod *corev1.Pod
	// Claims are those that the pod needs, in its order, or the one claim. Those that
	// don't exist yet are made from their templates, and as the last the one for extended
	// resources.
	Claims []*resourceapi.ResourceClaim
	// Made are those of Claims that have yet to be made from templates.
	Made []*resourceapi.ResourceClaim
	// Refused says why the pod, or whoever uses the claim, gets no devices on any node.
	Refused []string
	// Missing is about a claim or a template that does not exist, so that Claims are not all that the pod needs.
	Missing error
}

// Pending are the claims that have no devices yet.
func (s *Subject) Pending() []*resourceapi.ResourceClaim {
	return slices.DeleteFunc(slices.Clone(s.Claims), func(claim *resourceapi.ResourceClaim) bool {
		return claim.Status.Allocation != nil
	})
}

// KeptFrom says why the claims that have devices keep the others from a node; empty if they don't.
func (s *Subject) KeptFrom(node *corev1.Node) (string, error) {
	for _, claim := range s.Claims {
		allocation := claim.Status.Allocation
		if allocation == nil || allocation.NodeSelector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
		if err != nil {
			return "", fmt.Errorf("claim %s: status.allocation.nodeSelector: %w", klog.KObj(claim), err)
		}
		if !selector.Match(node) {
			return fmt.Sprintf("claim %s has devices that are not available on the node", klog.KObj(claim)), nil
		}
	}
	return "", nil
}

// String names the pod or the claim.
func (s *Subject) String() string {
	if s.Pod != nil {
		return "Pod " + s.Pod.Namespace + "/" + s.Pod.Name
	}
	return "ResourceClaim " + s.Claims[0].Namespace + "/" + s.Claims[0].Name
}

// Kinds of objects that an argument may name.
const (
	PodKind      = "pod"
	ClaimKind    = "claim"
	TemplateKind = "template"
	ClassKind    = "class"
	GroupKind    = "podgroup"
	NodeKind     = "node"
	// PlacementKind is of a hub, and no part of a State.
	PlacementKind = "placement"
)

// kindNames are the names by which kubectl knows the kinds, and the short ones.
var kindNames = map[string]string{
	"pod": PodKind, "pods": PodKind, "po": PodKind,
	"claim": ClaimKind, "resourceclaim": ClaimKind, "resourceclaims": ClaimKind,
	"template": TemplateKind, "resourceclaimtemplate": TemplateKind, "resourceclaimtemplates": TemplateKind,
	"class": ClassKind, "deviceclass": ClassKind, "deviceclasses": ClassKind,
	"podgroup": GroupKind, "podgroups": GroupKind,
	"node": NodeKind, "nodes": NodeKind, "no": NodeKind,
	"placement": PlacementKind, "placements": PlacementKind,
}

// Split takes "kind/name" or "name" apart. The kind is empty if none is given, and else
// one of the kinds.
func Split(argument string, kinds ...string) (kind, name string, err error) {
	before, name, found := strings.Cut(argument, "/")
	if !found {
		return "", argument, nil
	}
	kind = kindNames[strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(before), ".resource.k8s.io"), ".scheduling.k8s.io")]
	if !slices.Contains(kinds, kind) || name == "" {
		return "", "", fmt.Errorf("%q: must be NAME or %s/NAME", argument, strings.Join(kinds, "/NAME, "))
	}
	return kind, name, nil
}

// Subject finds a pod, claim or template in the namespace. An empty argument stands for
// the only pod, or else the only pending claim or template, of [Objects.Asked].
func (s *State) Subject(argument, namespace string) (*Subject, error) {
	if argument == "" {
		return s.onlySubject()
	}
	kind, name, err := Split(argument, PodKind, ClaimKind, TemplateKind)
	if err != nil {
		return nil, err
	}
	found := s.subjects(&s.Objects, func(k string, object metav1.Object) bool {
		return (kind == "" || k == kind) && object.GetName() == name && object.GetNamespace() == namespace
	})
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no pod, claim or template %q in namespace %q%s", argument, namespace, s.nearSubject(kind, name, namespace))
	case 1:
		return found[0]()
	default:
		return nil, fmt.Errorf("several objects have the name %q: write pod/%s, claim/%s or template/%s", name, name, name, name)
	}
}

// onlySubject prefers pods, whose claims need no second look.
func (s *State) onlySubject() (*Subject, error) {
	found := s.subjects(s.Asked(), func(kind string, _ metav1.Object) bool { return kind == PodKind })
	if len(found) == 0 {
		found = s.subjects(s.Asked(), func(_ string, object metav1.Object) bool {
			claim, isClaim := object.(*resourceapi.ResourceClaim)
			return !isClaim || claim.Status.Allocation == nil
		})
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("there are %d pods, pending claims and templates: name the one that you mean, as pod/NAME, claim/NAME or template/NAME", len(found))
	}
	return found[0]()
}

func (s *State) subjects(of *Objects, wanted func(kind string, object metav1.Object) bool) []func() (*Subject, error) {
	var found []func() (*Subject, error)
	for _, pod := range of.Pods {
		if wanted(PodKind, pod) {
			found = append(found, func() (*Subject, error) { return s.SubjectOf(pod) })
		}
	}
	for _, claim := range of.Claims {
		if wanted(ClaimKind, claim) {
			found = append(found, func() (*Subject, error) {
				subject := &Subject{Claims: []*resourceapi.ResourceClaim{claim}}
				if claim.DeletionTimestamp != nil {
					subject.Refused = []string{podclaims.Deleted(claim).Error()}
				}
				return subject, nil
			})
		}
	}
	for _, template := range of.Templates {
		if wanted(TemplateKind, template) {
			claims := []*resourceapi.ResourceClaim{Instantiate(template, template.Name)}
			found = append(found, func() (*Subject, error) { return &Subject{Claims: claims, Made: claims}, nil })
		}
	}
	return found
}

// SubjectOf is a pod with its claims. That a claim or a template does not exist is an error if only files were read: they
// may not be all that there is.
func (s *State) SubjectOf(pod *corev1.Pod) (*Subject, error) {
	subject := &Subject{Pod: pod}
	for i := range pod.Spec.ResourceClaims {
		if err := s.addClaim(subject, &pod.Spec.ResourceClaims[i]); err != nil {
			return nil, err
		}
	}
	extended, err := s.extendedClaim(pod)
	if extended != nil {
		subject.Claims = append(subject.Claims, extended)
	}
	return subject, err
}

// checker has claims of PodGroups count: without the feature gate DRAWorkloadResourceClaims there are none.
var checker = podclaims.Checker{WorkloadClaims: true}

// addClaim adds the claim of an entry of spec.resourceClaims, if one is needed.
func (s *State) addClaim(subject *Subject, entry *corev1.PodResourceClaim) error {
	pod := subject.Pod
	claim, err := checker.Of(pod, entry, s.getClaim)
	switch {
	case errors.Is(err, resourceclaim.ErrClaimNotFound):
		template := find(s.Templates, pod.Namespace, *entry.ResourceClaimTemplateName)
		if template == nil {
			return s.missing(subject, fmt.Errorf("pod %s/%s: there is no ResourceClaimTemplate %q%s", pod.Namespace, pod.Name, *entry.ResourceClaimTemplateName,
				near(s.Templates, pod.Namespace, *entry.ResourceClaimTemplateName)))
		}
		claim = Instantiate(template, pod.Name+"-"+entry.Name)
		subject.Made = append(subject.Made, claim)
	case apierrors.IsNotFound(err):
		name, _, _ := resourceclaim.Name(pod, entry)
		return s.missing(subject, fmt.Errorf("pod %s/%s: there is no ResourceClaim %q%s", pod.Namespace, pod.Name, *name, near(s.Claims, pod.Namespace, *name)))
	case err != nil && claim == nil:
		return err
	case err != nil:
		subject.Refused = append(subject.Refused, err.Error())
	}
	if claim != nil {
		subject.Claims = append(subject.Claims, claim)
	}
	return nil
}

// missing is about an object that was not read.
func (s *State) missing(subject *Subject, err error) error {
	if !s.HasCluster {
		return err
	}
	if subject.Missing == nil {
		subject.Missing = err
	}
	return nil
}

func (s *State) getClaim(namespace, name string) (*resourceapi.ResourceClaim, error) {
	if claim := find(s.Claims, namespace, name); claim != nil {
		return claim, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
}

// near asks for the object of the namespace that has nearly the name.
func near[T metav1.Object](objects []T, namespace, name string) string {
	return nearest.DidYouMean("", name, func(yield func(string) bool) {
		for _, object := range objects {
			if object.GetNamespace() == namespace && !yield(object.GetName()) {
				return
			}
		}
	})
}

// nearSubject asks for the pod, the claim or the template of nearly that name, with its kind.
func (s *State) nearSubject(kind, name, namespace string) string {
	for _, of := range []struct{ kind, near string }{
		{PodKind, near(s.Pods, namespace, name)}, {ClaimKind, near(s.Claims, namespace, name)}, {TemplateKind, near(s.Templates, namespace, name)},
	} {
		if of.near != "" && (kind == "" || kind == of.kind) {
			return strings.Replace(of.near, `"`, `"`+of.kind+"/", 1)
		}
	}
	return ""
}

// NearGroup asks for the PodGroup of nearly that name.
func (s *State) NearGroup(namespace, name string) string { return near(s.Groups, namespace, name) }

func find[T any, P interface {
	*T
	metav1.Object
}](objects []P, namespace, name string) P {
	for _, object := range objects {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object
		}
	}
	return nil
}

// Claim finds a claim, nil if there is none.
func (s *State) Claim(namespace, name string) *resourceapi.ResourceClaim {
	return find(s.Claims, namespace, name)
}

// Group finds a group, nil if there is none.
func (s *State) Group(namespace, name string) *schedulingapi.PodGroup {
	return find(s.Groups, namespace, name)
}

// GroupOf is the group of a pod, nil if it has none.
func (s *State) GroupOf(pod *corev1.Pod) *schedulingapi.PodGroup {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return nil
	}
	return s.Group(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
}

// Instantiate makes the claim that the template describes.
func Instantiate(template *resourceapi.ResourceClaimTemplate, name string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   template.Namespace,
			Name:        name,
			Labels:      template.Spec.Labels,
			Annotations: template.Spec.Annotations,
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
}
