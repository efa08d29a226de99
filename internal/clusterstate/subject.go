// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
)

// Subject is what one asks about: a pod with its claims, or a claim.
type Subject struct {
	// Pod is nil if the question is about a claim.
	Pod *corev1.Pod
	// Claims are those that the pod needs, in its order, or the one claim. Those that
	// don't exist yet are made from their templates, and as the last the one for extended
	// resources.
	Claims []*resourceapi.ResourceClaim
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
// the only pod, or else the only pending claim or template that there is.
func (s *State) Subject(argument, namespace string) (*Subject, error) {
	if argument == "" {
		return s.onlySubject()
	}
	kind, name, err := Split(argument, PodKind, ClaimKind, TemplateKind)
	if err != nil {
		return nil, err
	}
	found := s.subjects(func(k string, object metav1.Object) bool {
		return (kind == "" || k == kind) && object.GetName() == name && object.GetNamespace() == namespace
	})
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no pod, claim or template %q in namespace %q", argument, namespace)
	case 1:
		return found[0]()
	default:
		return nil, fmt.Errorf("several objects have the name %q: write pod/%s, claim/%s or template/%s", name, name, name, name)
	}
}

// onlySubject prefers pods, whose claims need no second look.
func (s *State) onlySubject() (*Subject, error) {
	found := s.subjects(func(kind string, _ metav1.Object) bool { return kind == PodKind })
	if len(found) == 0 {
		found = s.subjects(func(_ string, object metav1.Object) bool {
			claim, isClaim := object.(*resourceapi.ResourceClaim)
			return !isClaim || claim.Status.Allocation == nil
		})
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("there are %d pods, pending claims and templates: name the one that you mean, as pod/NAME, claim/NAME or template/NAME", len(found))
	}
	return found[0]()
}

func (s *State) subjects(wanted func(kind string, object metav1.Object) bool) []func() (*Subject, error) {
	var found []func() (*Subject, error)
	for _, pod := range s.Pods {
		if wanted(PodKind, pod) {
			found = append(found, func() (*Subject, error) { return s.SubjectOf(pod) })
		}
	}
	for _, claim := range s.Claims {
		if wanted(ClaimKind, claim) {
			found = append(found, func() (*Subject, error) { return &Subject{Claims: []*resourceapi.ResourceClaim{claim}}, nil })
		}
	}
	for _, template := range s.Templates {
		if wanted(TemplateKind, template) {
			claim := Instantiate(template, template.Name)
			found = append(found, func() (*Subject, error) { return &Subject{Claims: []*resourceapi.ResourceClaim{claim}}, nil })
		}
	}
	return found
}

// SubjectOf is a pod with its claims.
func (s *State) SubjectOf(pod *corev1.Pod) (*Subject, error) {
	subject := &Subject{Pod: pod}
	for i := range pod.Spec.ResourceClaims {
		claim, err := s.claimOf(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if claim != nil {
			subject.Claims = append(subject.Claims, claim)
		}
	}
	extended, err := s.extendedClaim(pod)
	if extended != nil {
		subject.Claims = append(subject.Claims, extended)
	}
	return subject, err
}

// claimOf is nil if no claim is needed for the entry.
func (s *State) claimOf(pod *corev1.Pod, entry *corev1.PodResourceClaim) (*resourceapi.ResourceClaim, error) {
	name, _, err := resourceclaim.Name(pod, entry)
	if err != nil {
		if entry.ResourceClaimTemplateName == nil {
			return nil, err
		}
		template := find(s.Templates, pod.Namespace, *entry.ResourceClaimTemplateName)
		if template == nil {
			return nil, fmt.Errorf("pod %s/%s: there is no ResourceClaimTemplate %q", pod.Namespace, pod.Name, *entry.ResourceClaimTemplateName)
		}
		return Instantiate(template, pod.Name+"-"+entry.Name), nil
	}
	if name == nil {
		return nil, nil
	}
	claim := find(s.Claims, pod.Namespace, *name)
	if claim == nil {
		return nil, fmt.Errorf("pod %s/%s: there is no ResourceClaim %q", pod.Namespace, pod.Name, *name)
	}
	return claim, nil
}

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
