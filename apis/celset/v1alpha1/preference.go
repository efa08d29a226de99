// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/celset/celset/apis/internal/strictjson"
)

// PreferenceKind is the kind of [CELDevicePreference].
const PreferenceKind = "CELDevicePreference"

// MaxPreferences is the maximum number of preferences that a claim or a class may define. It is small, because each preference
// needs a search of its own.
const MaxPreferences = 4

// Preference is a valid CELDevicePreference with the requests to which it applies and its location.
type Preference struct {
	Name       string
	Expression string
	Policy     PreferencePolicy
	Variables  []Variable
	// Requests names the requests to which the preference applies, in the same form as [Constraint.Requests].
	Requests []string
	Source   Source
}

// Label returns the name of the preference in messages. If a class defines the preference, the label includes the location.
func (p *Preference) Label() string {
	if p.Source.Object.Kind != classKind {
		return p.Name
	}
	return fmt.Sprintf("%s of %s", p.Name, p.Source)
}

// Preferences decodes and validates the preferences in the claim or template of the carrier, in the order of the configuration.
// If some are invalid, it returns the valid ones together with an [*Error]. It also returns a preference that names unknown
// requests, because the mistake may be in the requests of the claim.
func (c Carrier) Preferences() ([]Preference, error) {
	if err := c.CheckTexts(); err != nil {
		return nil, err
	}
	path := c.Path.Child("devices")
	preferences, errs := decodePreferences(claimConfigurations(&c.Spec.Devices), c.Object, path.Child("config"))
	names := requestNames(&c.Spec.Devices)
	for _, p := range preferences {
		for i, request := range p.Requests {
			if !names[request] {
				errs = append(errs, unknownRequest(path.Child("config").Index(p.Source.Index).Child("opaque", "parameters", "requests").Index(i), request))
			}
		}
	}
	return preferences, errorAbout(c.Object, errs)
}

// ClassPreferences decodes and validates the preferences of a device class. If some are invalid, it returns the valid ones
// together with an [*Error].
func ClassPreferences(class *resourceapi.DeviceClass) ([]Preference, error) {
	object := classReference(class)
	preferences, errs := decodePreferences(classConfigurations(class), object, field.NewPath("spec", "config"))
	return preferences, errorAbout(object, errs)
}

// HasPreferences reports whether a device class defines a preference. The preference may be malformed.
func HasPreferences(class *resourceapi.DeviceClass) bool {
	for i := range class.Spec.Config {
		if IsPreference(class.Spec.Config[i].DeviceConfiguration) {
			return true
		}
	}
	return false
}

// HasPreference reports whether a preference applies to the claim. The claim or a class that the claim uses may define it.
// hasPreferences reports whether the named class defines a preference.
func HasPreference(claim *resourceapi.ResourceClaim, hasPreferences func(className string) bool) bool {
	for i := range claim.Spec.Devices.Config {
		if IsPreference(claim.Spec.Devices.Config[i].DeviceConfiguration) {
			return true
		}
	}
	for _, r := range requestsOf(&claim.Spec.Devices) {
		if hasPreferences(r.className) {
			return true
		}
	}
	return false
}

// IsPreference reports whether a configuration entry has the kind of a preference. It runs once per node, on parameters that
// any user can write. To be fast, it decodes only parameters that contain the name of the kind.
func IsPreference(configuration resourceapi.DeviceConfiguration) bool {
	return hasKind(configuration, PreferenceKind)
}

func hasKind(configuration resourceapi.DeviceConfiguration, kind string) bool {
	if !isDefinition(configuration) {
		return false
	}
	raw, err := configuration.Opaque.Parameters.MarshalJSON()
	if err != nil || !mayHave(raw, kind) {
		return false
	}
	// Decode only the kind. A preference with a wrong apiVersion still counts as a preference, and decoding it reports the
	// mistake.
	var meta struct {
		Kind string `json:"kind"`
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, &meta) == nil && meta.Kind == kind
}

// mayHave reports whether the JSON may contain a word, spelled plainly or with escaped letters.
func mayHave(raw []byte, text string) bool {
	return bytes.Contains(raw, []byte(text)) || bytes.Contains(raw, []byte(`\u`))
}

// decodePreferences decodes and validates each preference among the configuration entries, as decodeAll does for constraints.
func decodePreferences(configurations []resourceapi.DeviceConfiguration, object ObjectReference, path *field.Path) ([]Preference, field.ErrorList) {
	var preferences []Preference
	var errs field.ErrorList
	first := map[string]*field.Path{}
	for i, configuration := range configurations {
		if !IsPreference(configuration) {
			continue
		}
		entry := path.Index(i)
		parameters := entry.Child("opaque", "parameters")
		preference, entryErrs := decodePreference(configuration.Opaque, parameters)
		switch {
		case len(entryErrs) > 0:
		case len(preference.Requests) > 0 && object.Kind == classKind:
			entryErrs = field.ErrorList{field.Forbidden(parameters.Child("requests"), "only a claim can set requests: remove this field, a preference of a class applies to each request for the class")}
		case first[preference.Name] != nil:
			entryErrs = field.ErrorList{duplicateName(parameters, preference.Name, first[preference.Name])}
		case len(preferences) == MaxPreferences:
			entryErrs = field.ErrorList{field.TooMany(path, MaxPreferences+1, MaxPreferences)}
		}
		if len(entryErrs) > 0 {
			errs = append(errs, entryErrs...)
			continue
		}
		first[preference.Name] = entry
		preferences = append(preferences, Preference{
			Name: preference.Name, Expression: preference.Expression, Policy: preference.Policy, Variables: preference.Variables, Requests: preference.Requests,
			Source: Source{Object: object, Field: entry.String(), Index: i},
		})
	}
	return preferences, errs
}

func duplicateName(parameters *field.Path, name string, first *field.Path) *field.Error {
	err := field.Duplicate(parameters.Child("name"), name)
	err.Detail = fmt.Sprintf("already defined at %s: rename or remove one of them", first)
	return err
}

func decodePreference(opaque *resourceapi.OpaqueDeviceConfiguration, path *field.Path) (*CELDevicePreference, field.ErrorList) {
	raw, err := opaque.Parameters.MarshalJSON()
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	meta, errs := strictjson.TypeMeta(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	errs, known := checkType(meta.APIVersion, meta.Kind, path, PreferenceKind)
	if !known {
		return nil, errs
	}
	preference := &CELDevicePreference{}
	if errs = append(errs, strictjson.Unmarshal(raw, preference, path)...); len(errs) > 0 {
		return nil, errs
	}
	return preference, ValidatePreference(preference, path)
}

// ValidatePreference checks the values of a decoded preference. path is the path of the preference. ValidatePreference does not
// compile the expression.
func ValidatePreference(preference *CELDevicePreference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if preference.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "messages refer to the preference by this name"))
	} else {
		errs = append(errs, validateIdentifier(preference.Name, path.Child("name"))...)
	}
	switch preference.Type {
	case PreferenceTypeExpression:
		return append(errs, validateExpressionMember(preference, path)...)
	case PreferenceTypePolicy:
		return append(errs, validatePolicyMember(preference, path)...)
	case "":
		return append(errs, field.Required(path.Child("type"), "must be Expression or Policy, whichever of expression and policy is set"))
	default:
		return append(errs, field.NotSupported(path.Child("type"), preference.Type, []PreferenceType{PreferenceTypeExpression, PreferenceTypePolicy}))
	}
}

func validateExpressionMember(preference *CELDevicePreference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(preference.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "must be a CEL expression over `devices` that returns an int"))
	} else {
		errs = append(errs, validateExpression(preference.Expression, path.Child("expression"))...)
	}
	if preference.Policy != "" {
		errs = append(errs, notOfType(path.Child("policy"), preference.Type))
	}
	return append(errs, validateVariables(preference.Variables, "device", path.Child("variables"))...)
}

func validatePolicyMember(preference *CELDevicePreference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(PreferencePolicies, preference.Policy) {
		errs = append(errs, field.NotSupported(path.Child("policy"), preference.Policy, PreferencePolicies))
	}
	if preference.Expression != "" {
		errs = append(errs, notOfType(path.Child("expression"), preference.Type))
	}
	if len(preference.Variables) > 0 {
		errs = append(errs, notOfType(path.Child("variables"), preference.Type))
	}
	return errs
}

func notOfType(path *field.Path, actual PreferenceType) *field.Error {
	return field.Forbidden(path, fmt.Sprintf("not allowed for type %s: remove this field, or change the type", actual))
}

// ResolvePreferences returns the preferences that apply to the claim. The claim's own preferences come first, in the order of the
// configuration. Then come the preferences of classes, in the order of the requests, for each request to which no preference of
// the claim applies. Every error is an [*Error] about the claim.
func ResolvePreferences(claim *resourceapi.ResourceClaim, classes ClassGetter) ([]Preference, error) {
	return ClaimCarrier(claim).ResolvePreferences(classes)
}

// ResolvePreferences is [ResolvePreferences] for any carrier.
func (c Carrier) ResolvePreferences(classes ClassGetter) ([]Preference, error) {
	preferences, err := c.Preferences()
	if err != nil {
		return nil, err
	}
	r := preferenceResolver{Carrier: c, getter: classes, byClass: map[string][]Preference{}}
	own := preferences
	for _, request := range requestsOf(&c.Spec.Devices) {
		if isAboutAny(own, &request) {
			continue
		}
		for _, p := range r.ofClass(&request) {
			p.Requests = []string{request.fullName}
			preferences = append(preferences, p)
		}
	}
	if len(r.errs) > 0 {
		return nil, &Error{Object: c.Object, Errors: r.errs, Causes: r.causes}
	}
	return preferences, nil
}

// preferenceResolver reads each class once, because many requests of a claim may use the same class.
type preferenceResolver struct {
	Carrier
	getter  ClassGetter
	byClass map[string][]Preference
	errs    field.ErrorList
	causes  []error
}

// ofClass returns the preferences of the request's class. It returns none if the class has a recorded error or can't be read.
// The search for devices reports a class that can't be read.
func (r *preferenceResolver) ofClass(request *requestOfClass) []Preference {
	if known, consulted := r.byClass[request.className]; consulted {
		return known
	}
	r.byClass[request.className] = nil
	class, err := r.getter.Get(request.className)
	if err != nil {
		return nil
	}
	preferences, err := ClassPreferences(class)
	if err != nil {
		r.causes = append(r.causes, err)
		path := r.Path.Child(request.path.Child("deviceClassName").String())
		r.errs = append(r.errs, field.Invalid(path, request.className, err.Error()))
		return nil
	}
	r.byClass[request.className] = preferences
	return preferences
}

// isAboutAny reports whether one of the preferences applies to the request.
func isAboutAny(preferences []Preference, request *requestOfClass) bool {
	for _, p := range preferences {
		if len(p.Requests) == 0 {
			return true
		}
		for _, name := range p.Requests {
			if name == request.name || name == request.fullName {
				return true
			}
		}
	}
	return false
}

// RequestsWithout returns the names of the claim's requests to which none of the preferences applies. preferences must include
// the preferences of classes.
func RequestsWithout(claim *resourceapi.ResourceClaim, preferences []Preference) []string {
	var without []string
	for _, request := range requestsOf(&claim.Spec.Devices) {
		if !isAboutAny(preferences, &request) {
			without = append(without, request.fullName)
		}
	}
	return without
}
