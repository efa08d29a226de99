// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	validationutil "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/apis/internal/strictjson"
	"github.com/celset/celset/apis/nearest"
)

const (
	// NodeSetConstraintKind is the kind of [CELNodeSetConstraint].
	NodeSetConstraintKind = "CELNodeSetConstraint"

	// NodeSetAnnotation is the annotation of a PodGroup that holds a [CELNodeSetConstraint], as YAML or JSON. It is for groups
	// of pods without claims.
	NodeSetAnnotation = "celset.dev/node-set-constraint"

	// MaxNodeSetText is the maximum length of the annotation, in bytes.
	MaxNodeSetText = 16 << 10

	// MaxNodeSetSize is the maximum number of nodes in a set.
	MaxNodeSetSize = 256

	// NodeSetFeatureGate is the name of the feature gate of node set constraints.
	NodeSetFeatureGate = "CelsetNodeSetConstraint"
)

// NodeSetConstraint is a valid CELNodeSetConstraint and its location.
type NodeSetConstraint struct {
	Name       string
	Expression string
	// Preference is "" if there is no preference.
	Preference string
	Variables  []Variable
	// PodsPerNode is at least 1.
	PodsPerNode int
	Source      Source
}

// isSame reports whether two constraints are equal except for name and location.
func (c *NodeSetConstraint) isSame(other *NodeSetConstraint) bool {
	return c.Expression == other.Expression && c.Preference == other.Preference && c.PodsPerNode == other.PodsPerNode &&
		slices.Equal(c.Variables, other.Variables)
}

// NodeSetReference returns the name of the node set constraint that a PodGroup refers to by a topology key. ok is false if
// there is no reference.
func NodeSetReference(group *compat.PodGroup) (name string, ok bool) {
	if group == nil || group.Spec.SchedulingConstraints == nil {
		return "", false
	}
	for _, topology := range group.Spec.SchedulingConstraints.Topology {
		if name, ok := strings.CutPrefix(topology.Key, AttributeDomain+"/"); ok {
			return name, true
		}
	}
	return "", false
}

// IsNodeSetConstraint reports whether a configuration entry has the kind of a node set constraint.
func IsNodeSetConstraint(configuration resourceapi.DeviceConfiguration) bool {
	return hasKind(configuration, NodeSetConstraintKind)
}

// NodeSets decodes and validates the node set constraints in the claim or template of the carrier. If some are invalid, it
// returns the valid ones together with an [*Error].
func (c Carrier) NodeSets() ([]NodeSetConstraint, error) {
	if err := c.CheckTexts(); err != nil {
		return nil, err
	}
	return nodeSetsIn(claimConfigurations(&c.Spec.Devices), c.Object, c.Path.Child("devices", "config"))
}

// ClassNodeSets decodes and validates the node set constraints of a device class, as [Carrier.NodeSets] does for a carrier.
func ClassNodeSets(class *resourceapi.DeviceClass) ([]NodeSetConstraint, error) {
	return nodeSetsIn(classConfigurations(class), classReference(class), field.NewPath("spec", "config"))
}

func nodeSetsIn(configurations []resourceapi.DeviceConfiguration, object ObjectReference, path *field.Path) ([]NodeSetConstraint, error) {
	var result []NodeSetConstraint
	var errs field.ErrorList
	first := map[string]*field.Path{}
	for i, configuration := range configurations {
		if !IsNodeSetConstraint(configuration) {
			continue
		}
		entry := path.Index(i)
		parameters := entry.Child("opaque", "parameters")
		raw, err := configuration.Opaque.Parameters.MarshalJSON()
		if err != nil {
			errs = append(errs, field.Invalid(parameters, field.OmitValueType{}, err.Error()))
			continue
		}
		constraint, entryErrs := decodeNodeSet(raw, parameters)
		if len(entryErrs) == 0 && first[constraint.Name] != nil {
			entryErrs = field.ErrorList{duplicateName(parameters, constraint.Name, first[constraint.Name])}
		}
		if len(entryErrs) > 0 {
			errs = append(errs, entryErrs...)
			continue
		}
		first[constraint.Name] = entry
		constraint.Source = Source{Object: object, Field: entry.String(), Index: i}
		result = append(result, *constraint)
	}
	return result, errorAbout(object, errs)
}

// GroupNodeSet decodes and validates the constraint in the annotation of a PodGroup. It returns nil if the annotation is absent.
// The error is an [*Error].
func GroupNodeSet(group *compat.PodGroup) (*NodeSetConstraint, error) {
	text, ok := group.Annotations[NodeSetAnnotation]
	if !ok {
		return nil, nil
	}
	object, path := referenceTo("PodGroup", group), field.NewPath("metadata", "annotations").Key(NodeSetAnnotation)
	if len(text) > MaxNodeSetText {
		return nil, errorAbout(object, field.ErrorList{field.TooLong(path, "", MaxNodeSetText)})
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, errorAbout(object, field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must be a %s as YAML or JSON: %v", NodeSetConstraintKind, err))})
	}
	constraint, errs := decodeNodeSet(raw, path)
	if len(errs) > 0 {
		return nil, errorAbout(object, errs)
	}
	constraint.Source = Source{Object: object, Field: path.String(), Index: NoReference}
	return constraint, nil
}

func decodeNodeSet(raw []byte, path *field.Path) (*NodeSetConstraint, field.ErrorList) {
	meta, errs := strictjson.TypeMeta(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	errs, known := checkType(meta.APIVersion, meta.Kind, path, NodeSetConstraintKind)
	if !known {
		return nil, errs
	}
	decoded := &CELNodeSetConstraint{}
	errs = append(errs, strictjson.Unmarshal(raw, decoded, path)...)
	if len(errs) == 0 {
		errs = ValidateNodeSet(decoded, path)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return &NodeSetConstraint{
		Name: decoded.Name, Expression: decoded.Expression, Preference: decoded.Preference, Variables: decoded.Variables,
		PodsPerNode: int(ptr.Deref(decoded.PodsPerNode, 1)),
	}, nil
}

// ValidateNodeSet checks the values of a decoded constraint. path is the path of the constraint. ValidateNodeSet does not compile
// the expressions.
func ValidateNodeSet(constraint *CELNodeSetConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if constraint.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), fmt.Sprintf("PodGroups refer to the constraint with the topology key %s/<name>", AttributeDomain)))
	} else if errs = validateIdentifier(constraint.Name, path.Child("name")); len(errs) == 0 {
		// A label key can't end with an underscore.
		for _, message := range validationutil.IsQualifiedName(AttributeDomain + "/" + constraint.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), constraint.Name, message))
		}
	}
	if strings.TrimSpace(constraint.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "must be a CEL expression over `nodes` that returns a bool"))
	}
	length := len(constraint.Expression) + len(constraint.Preference)
	for _, v := range constraint.Variables {
		length += len(v.Expression)
	}
	if length > MaxExpressionLength {
		errs = append(errs, field.TooLong(path.Child("expression"), "", MaxExpressionLength))
	}
	if perNode := ptr.Deref(constraint.PodsPerNode, 1); perNode < 1 || perNode > MaxNodeSetSize {
		errs = append(errs, field.Invalid(path.Child("podsPerNode"), perNode, fmt.Sprintf("must be between 1 and %d", MaxNodeSetSize)))
	}
	return append(errs, validateVariables(constraint.Variables, "node", path.Child("variables"))...)
}

// ResolveNodeSet finds the node set constraint with the name that a PodGroup refers to. If own, the constraint of the group's
// annotation, is not nil and has the name, it has priority. Otherwise ResolveNodeSet searches the claims of the pods, then the
// device classes that the claims use. If several objects define the name, the definitions must be equal. Every error is an
// [*Error].
func ResolveNodeSet(group *compat.PodGroup, own *NodeSetConstraint, name string, claims []*resourceapi.ResourceClaim, classes ClassGetter) (*NodeSetConstraint, error) {
	if own != nil && own.Name == name {
		return own, nil
	}
	r := nodeSetResolver{object: referenceTo("PodGroup", group), name: name, seen: map[string]bool{}}
	if own != nil {
		r.names = append(r.names, own.Name)
	}
	for _, claim := range claims {
		if r.isNew(claim) {
			found, err := ClaimCarrier(claim).NodeSets()
			r.add(found, err)
		}
	}
	if r.found == nil && r.err == nil {
		seen := map[string]bool{}
		for _, claim := range claims {
			for _, className := range coveredClasses(&claim.Spec.Devices, nil) {
				if seen[className] {
					continue
				}
				seen[className] = true
				// Skip a class that does not exist. The allocator reports that the devices of the class are missing.
				if class, err := classes.Get(className); err == nil {
					found, err := ClassNodeSets(class)
					r.add(found, err)
				}
			}
		}
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case r.found == nil:
		return nil, r.notFound()
	default:
		return r.found, nil
	}
}

// nodeSetResolver searches several objects, one by one, for the constraint with the given name.
type nodeSetResolver struct {
	object ObjectReference
	name   string
	found  *NodeSetConstraint
	err    error
	// names are the names of other constraints that the search found, for suggestions in messages.
	names []string
	// seen has the definitions of the claims read so far, as text. bytes is the total length of these texts.
	seen  map[string]bool
	bytes int
}

// isNew reports whether no earlier claim had the same definitions. Claims of the same template have the same definitions. If
// the total length exceeds the limit for the claims of a pod, isNew records an error and returns false.
func (r *nodeSetResolver) isNew(claim *resourceapi.ResourceClaim) bool {
	if r.err != nil {
		return false
	}
	var text []byte
	for i := range claim.Spec.Devices.Config {
		if configuration := claim.Spec.Devices.Config[i].DeviceConfiguration; isDefinition(configuration) {
			text = append(text, configuration.Opaque.Parameters.Raw...)
		}
	}
	if len(text) == 0 || r.seen[string(text)] {
		return false
	}
	r.seen[string(text)] = true
	if r.bytes += len(text); r.bytes > MaxPodText {
		r.err = errorAbout(r.object, field.ErrorList{field.Forbidden(r.path(), fmt.Sprintf(
			"the claims of the group's pods have more than %d bytes of different configuration for %s: use fewer templates", MaxPodText, DriverName))})
	}
	return r.err == nil
}

func (r *nodeSetResolver) add(constraints []NodeSetConstraint, err error) {
	if r.err != nil {
		return
	}
	r.err = err
	for i := range constraints {
		c := &constraints[i]
		switch {
		case c.Name != r.name:
			r.names = append(r.names, c.Name)
		case r.found == nil:
			r.found = c
		case !r.found.isSame(c) && r.err == nil:
			r.err = errorAbout(r.object, field.ErrorList{field.Invalid(r.path(), attribute(r.name),
				fmt.Sprintf("%s and %s define the constraint differently: make them equal, or define it in the annotation %s", r.found.Source, c.Source, NodeSetAnnotation))})
		}
	}
}

func (r *nodeSetResolver) path() *field.Path {
	return field.NewPath("spec", "schedulingConstraints", "topology").Index(0).Child("key")
}

func (r *nodeSetResolver) notFound() error {
	err := field.NotFound(r.path(), attribute(r.name))
	err.Detail = fmt.Sprintf("no %s of that name in the claims of the group's pods, in the device classes that they use, or in the annotation %s: define it in one of them",
		NodeSetConstraintKind, NodeSetAnnotation) + nearest.DidYouMean(AttributeDomain+"/", r.name, slices.Values(r.names))
	return errorAbout(r.object, field.ErrorList{err})
}
