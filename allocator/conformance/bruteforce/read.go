// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// A pool is a pool as the node sees it.
type pool struct {
	driver, name string
	// incomplete and invalid pools have no devices.
	incomplete, invalid bool
	devices             []*device
	// published are all devices, and sets all counter sets, for any node.
	published []*device
	sets      []resourceapi.CounterSet
}

// A device is a device that the node may use.
type device struct {
	*resourceapi.Device
	id    structured.DeviceID
	slice *resourceapi.ResourceSlice
	pool  *pool
	// shared devices can be allocated more than once.
	shared bool
	// value is the device in expressions. It is nil until an expression reads it.
	value map[string]any
}

// visiblePools returns the pools that have something for the node, in the search's order of devices: pools with binding
// conditions last, then by driver and name.
func visiblePools(p *Problem) []*pool {
	var pools []*pool
	for _, key := range poolKeys(p) {
		if pool, exists := visiblePool(p, key[0], key[1]); exists {
			pools = append(pools, pool)
		}
	}
	slices.SortStableFunc(pools, func(a, b *pool) int { return cmp.Compare(a.rank(), b.rank()) })
	return pools
}

func (p *pool) rank() int {
	if slices.ContainsFunc(p.devices, func(d *device) bool { return d.BindingConditions != nil }) {
		return 1
	}
	return 0
}

func poolKeys(p *Problem) [][2]string {
	keys := sets.New[[2]string]()
	for _, slice := range p.Slices {
		keys.Insert([2]string{slice.Spec.Driver, slice.Spec.Pool.Name})
	}
	return slices.SortedFunc(slices.Values(keys.UnsortedList()), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}

// visiblePool returns a pool as the node sees it. A pool without slices for the node does not exist for it. Neither does a pool
// whose generation on the node is incomplete while other nodes have a newer one.
func visiblePool(p *Problem, driver, name string) (*pool, bool) {
	result := &pool{driver: driver, name: name}
	all := slicesOf(p, driver, name)
	here := latest(slices.DeleteFunc(slices.Clone(all), func(s *resourceapi.ResourceSlice) bool { return !forNode(p, s) }))
	if len(here) == 0 {
		return result, false
	}
	generation, want := here[0].Spec.Pool.Generation, int(here[0].Spec.Pool.ResourceSliceCount)
	published := here
	if slices.ContainsFunc(here, func(s *resourceapi.ResourceSlice) bool { return int(s.Spec.Pool.ResourceSliceCount) != len(here) }) {
		if latest(all)[0].Spec.Pool.Generation > generation {
			return result, false
		}
		published = latest(all)
	}
	switch {
	case slices.ContainsFunc(published, func(s *resourceapi.ResourceSlice) bool { return int(s.Spec.Pool.ResourceSliceCount) != want }):
		result.invalid = true
	case len(published) != want:
		result.incomplete = true
	case contradictory(p, here, published):
		result.invalid = true
	default:
		result.devices, result.published = devicesOf(p, here), devicesOf(p, published)
		for _, d := range result.devices {
			d.pool = result
		}
		for _, slice := range published {
			result.sets = append(result.sets, slice.Spec.SharedCounters...)
		}
	}
	return result, true
}

// slicesOf returns the slices of a pool, slices of single nodes first.
func slicesOf(p *Problem, driver, name string) []*resourceapi.ResourceSlice {
	var local, shared []*resourceapi.ResourceSlice
	for _, slice := range p.Slices {
		switch {
		case slice.Spec.Driver != driver || slice.Spec.Pool.Name != name:
		case ptr.Deref(slice.Spec.NodeName, "") != "":
			local = append(local, slice)
		default:
			shared = append(shared, slice)
		}
	}
	return append(local, shared...)
}

// latest keeps the slices of the highest generation.
func latest(all []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	var result []*resourceapi.ResourceSlice
	for _, slice := range all {
		newest := !slices.ContainsFunc(all, func(other *resourceapi.ResourceSlice) bool {
			return other.Spec.Pool.Generation > slice.Spec.Pool.Generation
		})
		if newest {
			result = append(result, slice)
		}
	}
	return result
}

// forNode reports whether a slice has something for the node. Slices that need a disabled feature have nothing.
func forNode(p *Problem, slice *resourceapi.ResourceSlice) bool {
	spec := &slice.Spec
	if !p.Features.PartitionableDevices && (spec.PerDeviceNodeSelection != nil || len(spec.SharedCounters) > 0) {
		return false
	}
	if !ptr.Deref(spec.PerDeviceNodeSelection, false) {
		return matches(p.Node, spec.NodeName, spec.AllNodes, spec.NodeSelector)
	}
	return slices.ContainsFunc(spec.Devices, func(d resourceapi.Device) bool {
		return matches(p.Node, d.NodeName, d.AllNodes, d.NodeSelector)
	})
}

func matches(node *v1.Node, name *string, all *bool, selector *v1.NodeSelector) bool {
	if ptr.Deref(name, "") != "" {
		return *name == node.Name
	}
	if ptr.Deref(all, false) || selector == nil {
		return ptr.Deref(all, false)
	}
	matches, err := nodeaffinity.NewLazyErrorNodeSelector(selector).Match(node)
	return matches && err == nil
}

func holdsCounters(p *Problem, slice *resourceapi.ResourceSlice) bool {
	return p.Features.PartitionableDevices && len(slice.Spec.SharedCounters) > 0
}

// contradictory reports whether two devices for the node have the same name, or whether counters (for any node) are defined twice
// or used without a definition.
func contradictory(p *Problem, here, published []*resourceapi.ResourceSlice) bool {
	names := sets.New[string]()
	for _, d := range devicesOf(p, here) {
		if names.Has(d.Name) {
			return true
		}
		names.Insert(d.Name)
	}
	return p.Features.PartitionableDevices && contradictoryCounters(p, published)
}

func contradictoryCounters(p *Problem, published []*resourceapi.ResourceSlice) bool {
	defined := sets.New[string]()
	for _, slice := range published {
		for _, set := range slice.Spec.SharedCounters {
			if defined.Has(set.Name) {
				return true
			}
			defined.Insert(set.Name)
			for counter := range set.Counters {
				defined.Insert(set.Name + "/" + counter)
			}
		}
	}
	for _, d := range devicesOf(p, published) {
		for _, consumption := range d.ConsumesCounters {
			for counter := range consumption.Counters {
				if !defined.Has(consumption.CounterSet + "/" + counter) {
					return true
				}
			}
		}
	}
	return false
}

// devicesOf returns the devices of slices: slices by name, devices in published order.
func devicesOf(p *Problem, from []*resourceapi.ResourceSlice) []*device {
	sorted := slices.SortedFunc(slices.Values(from), func(a, b *resourceapi.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	var devices []*device
	for _, slice := range sorted {
		if holdsCounters(p, slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			devices = append(devices, &device{Device: d, slice: slice,
				shared: p.Features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
				id:     structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)})
		}
	}
	return devices
}

// A claim has requests and constraints. A request is a list of alternatives, usually one.
type claim struct {
	requests    [][]*request
	constraints []constraint
}

// A request is a request of a claim, or an alternative.
type request struct {
	name string
	// list is the name of the request that contains the alternative, or "".
	list        string
	class       string
	adminAccess bool
	// capacity is the requested capacity of each device.
	capacity map[resourceapi.QualifiedName]resource.Quantity
	all      bool
	// count is the number of devices wanted.
	count int
	// selected are the devices that pass the selectors, in order. usable reports for each of them whether the request may get it.
	selected []*device
	usable   []bool
}

func (s *solver) prepare(api *resourceapi.ResourceClaim) (*claim, error) {
	result := &claim{}
	for i := range api.Spec.Devices.Requests {
		alternatives, err := s.prepareAlternatives(&api.Spec.Devices.Requests[i])
		if err != nil {
			return nil, fmt.Errorf("claim %s, request %s: %w", api.Name, api.Spec.Devices.Requests[i].Name, err)
		}
		result.requests = append(result.requests, alternatives)
	}
	for i := range api.Spec.Devices.Constraints {
		c, err := s.prepareConstraint(api, &api.Spec.Devices.Constraints[i])
		if err != nil {
			return nil, fmt.Errorf("claim %s, constraint #%d: %w", api.Name, i, err)
		}
		result.constraints = append(result.constraints, c)
	}
	for _, r := range slices.Concat(result.requests...) {
		defaults, err := s.defaults(r, r.class)
		if err != nil {
			return nil, fmt.Errorf("claim %s, request %s: %w", api.Name, r.name, err)
		}
		result.constraints = append(result.constraints, defaults...)
	}
	return result, nil
}

func (s *solver) prepareAlternatives(api *resourceapi.DeviceRequest) ([]*request, error) {
	if api.Exactly != nil {
		r, err := s.prepareRequest(api.Name, api.Exactly)
		return []*request{r}, err
	}
	if len(api.FirstAvailable) == 0 || !s.Features.PrioritizedList {
		return nil, fmt.Errorf("neither exactly nor firstAvailable, or the latter is off")
	}
	var result []*request
	for _, sub := range api.FirstAvailable {
		r, err := s.prepareRequest(api.Name+"/"+sub.Name, &resourceapi.ExactDeviceRequest{
			DeviceClassName: sub.DeviceClassName, Selectors: sub.Selectors, Tolerations: sub.Tolerations,
			AllocationMode: sub.AllocationMode, Count: sub.Count, Capacity: sub.Capacity,
		})
		if err != nil {
			return nil, err
		}
		r.list = api.Name
		result = append(result, r)
	}
	return result, nil
}

func (s *solver) prepareRequest(name string, api *resourceapi.ExactDeviceRequest) (*request, error) {
	r := &request{
		name:        name,
		class:       api.DeviceClassName,
		adminAccess: ptr.Deref(api.AdminAccess, false),
		all:         api.AllocationMode == resourceapi.DeviceAllocationModeAll,
		count:       int(api.Count),
	}
	if api.Capacity != nil {
		r.capacity = api.Capacity.Requests
	}
	for _, d := range s.devices {
		selected, err := s.selects(api, d)
		if err != nil {
			return nil, err
		}
		// A request for all devices omits devices that are too small.
		if selected && s.isLargeEnough(r, d) {
			r.selected = append(r.selected, d)
			r.usable = append(r.usable, s.mayUse(api, d))
		}
	}
	if r.all {
		r.count = len(r.selected)
		for _, pool := range s.pools {
			if pool.incomplete || pool.invalid {
				return nil, fmt.Errorf("wants all devices, but pool %s/%s can't be seen as a whole%w", pool.driver, pool.name, structured.ErrFailedAllocationOnNode)
			}
		}
	}
	return r, nil
}

// selects reports whether a device is for the node and passes all selectors.
func (s *solver) selects(api *resourceapi.ExactDeviceRequest, d *device) (bool, error) {
	if len(d.BindingConditions) > 0 && !s.Features.DeviceBindingAndStatus {
		return false, nil
	}
	if ptr.Deref(d.slice.Spec.PerDeviceNodeSelection, false) && !matches(s.Node, d.NodeName, d.AllNodes, d.NodeSelector) {
		return false, nil
	}
	class := slices.IndexFunc(s.Classes, func(c *resourceapi.DeviceClass) bool { return c.Name == api.DeviceClassName })
	if class < 0 {
		return false, fmt.Errorf("device class %q does not exist", api.DeviceClassName)
	}
	for _, selector := range slices.Concat(s.Classes[class].Spec.Selectors, api.Selectors) {
		compiled := selectors.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return false, compiled.Error
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), dracel.Device{
			Driver: d.slice.Spec.Driver, Attributes: d.Attributes, Capacity: d.Capacity,
			AllowMultipleAllocations: d.AllowMultipleAllocations,
		})
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

var selectors = dracel.NewCache(1000, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})

// mayUse reports whether the device's own properties allow its use.
func (s *solver) mayUse(api *resourceapi.ExactDeviceRequest, d *device) bool {
	skips := len(d.slice.Spec.SkipNodeOperations) > 0
	if skips && !(s.Features.OptionalNodeOperations && slices.Contains(s.Node.Status.DeclaredFeatures, "DRAOptionalNodeOperations")) {
		return false
	}
	if len(d.ConsumesCounters) > 0 && !s.Features.PartitionableDevices {
		return false
	}
	return !s.Features.DeviceTaints || !slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
		return repels(taint) && !slices.ContainsFunc(api.Tolerations, func(toleration resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(toleration, taint)
		})
	})
}

func repels(taint resourceapi.DeviceTaint) bool {
	return taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
}

// A constraint is a condition on the devices of the requests that it covers.
type constraint struct {
	requests []string // empty means all
	// Exactly one of these fields is set.
	match, distinct string
	program         celgo.Program
	// variables are the variables of the program. values caches the devices as the program sees them.
	variables []variable
	values    map[*device]any
	// aboutNode is set if a failing program only excludes the node.
	aboutNode bool
}

func (c constraint) covers(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.name) || r.list != "" && slices.Contains(c.requests, r.list)
}

// satisfies reports whether a complete assignment satisfies the constraints of its claim. Constraints that compare attributes
// come first, because comparing can't fail.
func (s *solver) satisfies(c *claim, assignment []choice) (bool, error) {
	for _, constraint := range c.constraints {
		if constraint.program == nil && !constraint.compares(constraint.covered(assignment), s.Features.ListTypeAttributes) {
			return false, nil
		}
	}
	for _, constraint := range c.constraints {
		covered := constraint.covered(assignment)
		// Constraints are not evaluated on an empty set.
		if constraint.program == nil || len(covered) == 0 {
			continue
		}
		s.solution.Evaluations++
		satisfied, err := s.evaluate(constraint, covered)
		if err != nil {
			return false, &EvaluationError{Evaluation: s.solution.Evaluations, AboutNode: constraint.aboutNode, Err: err}
		}
		if !satisfied {
			return false, nil
		}
	}
	return true, nil
}

func (c constraint) covered(assignment []choice) []*device {
	var devices []*device
	for _, choice := range assignment {
		if c.covers(choice.request) {
			devices = append(devices, choice.device)
		}
	}
	return devices
}

// compares reports whether devices match or are distinct. All devices must have the attribute. To match, all must share a common
// value. To be distinct, no two may share a value. Only lists have more than one value.
func (c constraint) compares(devices []*device, lists bool) bool {
	var common sets.Set[string]
	for i, a := range devices {
		values := attribute(a, c.match+c.distinct, lists)
		if len(values) == 0 {
			return false
		}
		if i == 0 {
			common = values
		}
		common = common.Intersection(values)
		for _, b := range devices[:i] {
			shared := values.Intersection(attribute(b, c.match+c.distinct, lists))
			if c.distinct != "" && shared.Len() > 0 {
				return false
			}
		}
	}
	return c.match == "" || len(devices) == 0 || common.Len() > 0
}

// attribute returns the type and value of an attribute as one string, or one string for each element of a list. A name without a
// domain belongs to the driver's domain.
func attribute(d *device, name string, lists bool) sets.Set[string] {
	for short, value := range d.Attributes {
		full := string(short)
		if !strings.Contains(full, "/") {
			full = d.slice.Spec.Driver + "/" + full
		}
		if full == name {
			return elements(value, lists)
		}
	}
	return nil
}

// elements relies on the API's names of types: the list of "string" is "strings".
func elements(value resourceapi.DeviceAttribute, lists bool) sets.Set[string] {
	text, err := json.Marshal(value)
	if err != nil || !lists {
		return sets.New(string(text))
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil
	}
	result := sets.New[string]()
	for kind, content := range fields {
		list, isList := content.([]any)
		if !isList {
			list = []any{content}
		}
		for _, element := range list {
			result.Insert(fmt.Sprintf("%s %v", strings.TrimSuffix(kind, "s"), element))
		}
	}
	return result
}

func (s *solver) prepareConstraint(claim *resourceapi.ResourceClaim, api *resourceapi.DeviceConstraint) (constraint, error) {
	result := constraint{requests: api.Requests}
	switch {
	case api.DistinctAttribute != nil:
		result.distinct = string(*api.DistinctAttribute)
		return result, nil
	case api.MatchAttribute == nil:
		return result, fmt.Errorf("it is empty")
	}
	name, isReference := strings.CutPrefix(string(*api.MatchAttribute), "celset.dev/")
	if !isReference {
		result.match = string(*api.MatchAttribute)
		return result, nil
	}
	def, err := s.definition(claim, name)
	if err != nil {
		return result, err
	}
	return result, result.define(def)
}

// A definition is the definition of a constraint in a configuration.
type definition struct {
	Name, Expression string
	Variables        []struct{ Name, Expression string }
	FailurePolicy    string
	Enforcement      string
}

func (c *constraint) define(def definition) (err error) {
	for _, v := range def.Variables {
		program, err := compile(v.Expression)
		if err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
		c.variables = append(c.variables, variable{v.Name, program})
	}
	c.values, c.aboutNode = map[*device]any{}, def.FailurePolicy == "NodeDoesNotFit"
	c.program, err = compile(def.Expression)
	return err
}

// definition returns the definition with a name in the claim or in any class. Problems never define a name twice.
func (s *solver) definition(claim *resourceapi.ResourceClaim, name string) (definition, error) {
	var configurations []resourceapi.DeviceConfiguration
	for _, config := range claim.Spec.Devices.Config {
		configurations = append(configurations, config.DeviceConfiguration)
	}
	for _, class := range s.Classes {
		for _, config := range class.Spec.Config {
			configurations = append(configurations, config.DeviceConfiguration)
		}
	}
	definitions, err := definitionsIn(configurations)
	for _, def := range definitions {
		if def.Name == name {
			return def, err
		}
	}
	return definition{}, fmt.Errorf("no definition of %s: %w", name, err)
}

func definitionsIn(configurations []resourceapi.DeviceConfiguration) ([]definition, error) {
	var definitions []definition
	for _, config := range configurations {
		if config.Opaque == nil || config.Opaque.Driver != "celset.dev" {
			continue
		}
		var def definition
		if err := json.Unmarshal(config.Opaque.Parameters.Raw, &def); err != nil {
			return nil, fmt.Errorf("definition: %w", err)
		}
		definitions = append(definitions, def)
	}
	return definitions, nil
}

// defaults returns the default constraints of a class for a request or alternative that gets several devices.
func (s *solver) defaults(r *request, class string) ([]constraint, error) {
	if r.adminAccess || !r.all && r.count < 2 {
		return nil, nil
	}
	var configurations []resourceapi.DeviceConfiguration
	for _, c := range s.Classes {
		if c.Name != class {
			continue
		}
		for _, config := range c.Spec.Config {
			configurations = append(configurations, config.DeviceConfiguration)
		}
	}
	definitions, err := definitionsIn(configurations)
	var constraints []constraint
	for _, def := range definitions {
		if def.Enforcement != "Always" {
			continue
		}
		c := constraint{requests: []string{r.name}}
		if err := c.define(def); err != nil {
			return nil, err
		}
		constraints = append(constraints, c)
	}
	return constraints, err
}

// newEnvironment returns Kubernetes' CEL environment with the variables of expressions. CEL only gets the type "list" for
// devices. Variables of a definition can read device and variables.
var newEnvironment = sync.OnceValues(func() (*celgo.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []celgo.EnvOption{
			celgo.Variable("devices", celgo.ListType(celgo.DynType)),
			celgo.Variable("device", celgo.DynType),
			celgo.Variable("variables", celgo.DynType),
			ext.Bindings(ext.BindingsVersion(0)),
		},
	})
	if err != nil {
		return nil, err
	}
	return set.StoredExpressionsEnv(), nil
})

// programs caches compiled expressions, because compiling takes far longer than evaluating.
var programs sync.Map

func compile(expression string) (celgo.Program, error) {
	if known, ok := programs.Load(expression); ok {
		return known.(celgo.Program), nil
	}
	env, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	programs.Store(expression, program)
	return program, nil
}

// A variable is a variable of a definition.
type variable struct {
	name    string
	program celgo.Program
}

// evaluate evaluates an expression on a set of devices.
func (s *solver) evaluate(c constraint, devices []*device) (bool, error) {
	values := make([]any, len(devices))
	for i, d := range devices {
		if c.values[d] == nil {
			c.values[d] = s.valueFor(c, d)
		}
		values[i] = c.values[d]
	}
	result, _, err := c.program.Eval(map[string]any{"devices": values})
	if err != nil {
		return false, err
	}
	verdict, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression returned %v, not true or false", result)
	}
	return verdict, nil
}

// valueFor returns a device with the variables of a constraint as an additional key. A variable that fails is missing, so that
// reading it fails as well.
func (s *solver) valueFor(c constraint, d *device) map[string]any {
	if d.value == nil {
		d.value = s.value(d)
	}
	variables := map[string]any{}
	for _, v := range c.variables {
		if value, _, err := v.program.Eval(map[string]any{"device": d.value, "variables": maps.Clone(variables)}); err == nil {
			variables[v.name] = value
		}
	}
	result := maps.Clone(d.value)
	result["variables"] = variables
	return result
}

// value returns a device as a map. An additional key holds the name, which expressions can't read: maps are equal if they have
// the same content, but devices only if they are the same. Domains of other devices are empty.
func (s *solver) value(d *device) map[string]any {
	attributes, capacity := make(map[string]any), make(map[string]any)
	for _, slice := range s.Slices {
		attributes[slice.Spec.Driver], capacity[slice.Spec.Driver] = map[string]any{}, map[string]any{}
		for _, other := range slice.Spec.Devices {
			for name := range other.Attributes {
				domain, _ := split(slice.Spec.Driver, name)
				attributes[domain] = map[string]any{}
			}
		}
	}
	for name, attribute := range d.Attributes {
		domain, id := split(d.slice.Spec.Driver, name)
		attributes[domain].(map[string]any)[id] = scalar(attribute)
	}
	for name, value := range d.Capacity {
		domain, id := split(d.slice.Spec.Driver, name)
		capacity[domain].(map[string]any)[id] = apiservercel.Quantity{Quantity: ptr.To(value.Value.DeepCopy())}
	}
	return map[string]any{
		"name":                     d.id.String(),
		"driver":                   d.slice.Spec.Driver,
		"attributes":               attributes,
		"capacity":                 capacity,
		"allowMultipleAllocations": ptr.Deref(d.AllowMultipleAllocations, false),
	}
}

func split(driver string, name resourceapi.QualifiedName) (domain, id string) {
	if domain, id, qualified := strings.Cut(string(name), "/"); qualified {
		return domain, id
	}
	return driver, string(name)
}

// scalar converts the types that expressions in problems compare. Versions stay texts.
func scalar(attribute resourceapi.DeviceAttribute) any {
	switch {
	case attribute.IntValue != nil:
		return *attribute.IntValue
	case attribute.BoolValue != nil:
		return *attribute.BoolValue
	case attribute.StringValue != nil:
		return *attribute.StringValue
	default:
		return ptr.Deref(attribute.VersionValue, "")
	}
}
