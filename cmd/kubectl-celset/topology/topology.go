// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
)

// nameKey is the key of tables whose rows have names of devices.
const nameKey = v1alpha1.TableKeyName

// maxInput is the maximum number of bytes of a description. A ConfigMap has at most 1 MiB.
const maxInput = 2 << 20

// Options are the fields of the objects that the input does not determine. An empty field has the default of the format.
type Options struct {
	// Name is the name of the object. With several objects, a number follows the name.
	Name string
	// Driver is the driver that publishes the devices.
	Driver string
	// Domain is the domain of the attributes.
	Domain string
	// Key is the attribute that the keys of rows are values of, or "name".
	Key string
	// NodeSelector selects the nodes that the description is about.
	NodeSelector *metav1.LabelSelector
	// Links is the farthest path between two GPUs that counts as a link. Only nvidia-smi uses it.
	Links string
}

// A table is the content of an object.
type table struct {
	driver, key string
	rows        []row
	// computed holds attributes that expressions compute, instead of rows.
	computed []v1alpha1.ComputedAttribute
	// nodes holds the names of the nodes that the table is about. It is nil if the description does not name nodes.
	nodes []string
}

// A row has the attributes of one device.
type row struct {
	key    string
	values attributes
}

type attributes map[string]resourceapi.DeviceAttribute

func text1(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func number(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: &value}
}

// addStrings adds a list, unless it is empty. An attribute can't be an empty list.
func (a attributes) addStrings(name string, values []string) {
	if len(values) > 0 {
		a[name] = resourceapi.DeviceAttribute{StringValues: values}
	}
}

// A parser translates the text of an input into tables. Its warnings describe attributes that it left out.
type parser func(text string, o Options) ([]table, []string, error)

var parsers = map[string]parser{"nvidia-smi": fromNvidiaSMI, "neuron-ls": fromNeuronLS, "topograph": fromTopograph, "csv": fromCSV}

// Formats returns the names of the formats.
func Formats() []string { return slices.Sorted(maps.Keys(parsers)) }

// Read translates a description of a machine in a format. The warnings describe parts of the input that are not in the objects.
func Read(format string, from io.Reader, o Options) ([]*v1alpha1.DeviceAttributes, []string, error) {
	parse := parsers[format]
	if parse == nil {
		return nil, nil, fmt.Errorf("unknown format %q: must be one of %s", format, strings.Join(Formats(), ", "))
	}
	content, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(content) > maxInput:
		return nil, nil, fmt.Errorf("more than %d MiB, the limit: give the description of one machine", maxInput>>20)
	}
	tables, warnings, err := parse(strings.ToValidUTF8(strings.TrimPrefix(string(content), "\ufeff"), "\ufffd"), o)
	if err != nil {
		return nil, nil, err
	}
	objects, err := o.objects(tables, format)
	if err == nil {
		err = judge(objects)
	}
	if err != nil {
		return nil, nil, err
	}
	return objects, warnings, nil
}

// judge returns the mistake of the first object that the scheduler would reject.
func judge(objects []*v1alpha1.DeviceAttributes) error {
	enricher, err := deviceattributes.NewEnricher(deviceattributes.Config{})
	if err != nil {
		return err
	}
	for _, object := range objects {
		rejection, err := enricher.Check(context.Background(), object)
		if err != nil {
			return err
		}
		if rejection != nil {
			return fmt.Errorf("the object %s would have no effect: %s: correct the input or the flags", object.Name, rejection.Message)
		}
	}
	return nil
}

// objects returns an object for each table.
func (o Options) objects(tables []table, format string) ([]*v1alpha1.DeviceAttributes, error) {
	if len(tables) > v1alpha1.MaxDeviceAttributes {
		return nil, fmt.Errorf("the input needs %d DeviceAttributes objects, but at most %d are in effect: describe fewer nodes, or set --node-selector if all nodes are alike", len(tables), v1alpha1.MaxDeviceAttributes)
	}
	var objects []*v1alpha1.DeviceAttributes
	for i, t := range tables {
		name := cmp.Or(o.Name, format)
		if len(tables) > 1 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		object := &v1alpha1.DeviceAttributes{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DeviceAttributes"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.DeviceAttributesSpec{
				Driver: t.driver, NodeSelector: o.selector(t.nodes), Domain: cmp.Or(o.Domain, v1alpha1.DefaultAttributesDomain), Attributes: t.computed,
			},
		}
		if len(t.rows) > 0 {
			object.Spec.Table = &v1alpha1.AttributeTable{Key: t.key}
			for _, row := range t.rows {
				object.Spec.Table.Rows = append(object.Spec.Table.Rows, v1alpha1.AttributeRow{Key: row.key, Values: row.values})
			}
		}
		if err := check(object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// selector returns the node selector, limited to the nodes if there are any.
func (o Options) selector(nodes []string) *metav1.LabelSelector {
	if nodes == nil {
		return o.NodeSelector
	}
	selector := ptr.Deref(o.NodeSelector.DeepCopy(), metav1.LabelSelector{})
	selector.MatchExpressions = append(selector.MatchExpressions,
		metav1.LabelSelectorRequirement{Key: "kubernetes.io/hostname", Operator: metav1.LabelSelectorOpIn, Values: nodes})
	return &selector
}

// check returns an error if the API server would reject the object for its length or its names.
func check(object *v1alpha1.DeviceAttributes) error {
	if messages := validation.NameIsDNSSubdomain(object.Name, false); len(messages) > 0 {
		return fmt.Errorf("--name %q: %s", object.Name, messages[0])
	}
	if object.Spec.Driver == "" {
		return errors.New("the input does not name the driver of the devices: set --driver")
	}
	if object.Spec.Domain == object.Spec.Driver {
		return fmt.Errorf("--domain %q: a driver alone publishes in its domain: choose another domain", object.Spec.Domain)
	}
	if object.Spec.Table == nil {
		return nil
	}
	if count := len(object.Spec.Table.Rows); count > v1alpha1.MaxAttributeRows {
		return fmt.Errorf("%d rows: a DeviceAttributes object has at most %d: split the input", count, v1alpha1.MaxAttributeRows)
	}
	seen := map[string]bool{}
	for _, row := range object.Spec.Table.Rows {
		if err := checkRow(row); err != nil {
			return err
		}
		if seen[row.Key] {
			return fmt.Errorf("two rows have the key %q: choose an attribute that differs for each device as the key", row.Key)
		}
		seen[row.Key] = true
	}
	return nil
}

func checkRow(row v1alpha1.AttributeRow) error {
	if row.Key == "" || len(row.Key) > resourceapi.DeviceAttributeMaxValueLength {
		return fmt.Errorf("the key %q has %d bytes: it must have 1 to %d", row.Key, len(row.Key), resourceapi.DeviceAttributeMaxValueLength)
	}
	if strings.ContainsFunc(row.Key, isControl) {
		return fmt.Errorf("the key %q has a control character or invalid text: correct the key", row.Key)
	}
	if len(row.Values) == 0 || len(row.Values) > v1alpha1.MaxRowValues {
		return fmt.Errorf("row %q has %d attributes: it must have 1 to %d", row.Key, len(row.Values), v1alpha1.MaxRowValues)
	}
	count := 0
	for _, name := range slices.Sorted(maps.Keys(row.Values)) {
		value := row.Values[name]
		count += max(1, len(value.StringValues), len(value.IntValues), len(value.BoolValues), len(value.VersionValues))
		for _, text := range append(value.StringValues, ptr.Deref(value.StringValue, "")) {
			if strings.ContainsFunc(text, isControl) {
				return fmt.Errorf("row %q, attribute %s: %q has a control character or invalid text: correct the value", row.Key, name, text)
			}
			if len(text) > resourceapi.DeviceAttributeMaxValueLength {
				return fmt.Errorf("row %q, attribute %s: %q has %d bytes, but a value has at most %d", row.Key, name, text, len(text), resourceapi.DeviceAttributeMaxValueLength)
			}
		}
	}
	if count > resourceapi.ResourceSliceMaxAttributeValuesPerDevice {
		return fmt.Errorf("row %q has %d values in its attributes and lists: a device has at most %d", row.Key, count, resourceapi.ResourceSliceMaxAttributeValuesPerDevice)
	}
	return nil
}

// isControl reports whether YAML or a terminal can't show a character.
func isControl(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Write writes the objects as YAML, in documents of their own. The status is left out.
func Write(w io.Writer, objects []*v1alpha1.DeviceAttributes) error {
	for i, object := range objects {
		content, err := yaml.Marshal(struct {
			metav1.TypeMeta `json:",inline"`

			Metadata map[string]string             `json:"metadata"`
			Spec     v1alpha1.DeviceAttributesSpec `json:"spec"`
		}{object.TypeMeta, map[string]string{"name": object.Name}, object.Spec})
		if err != nil {
			return err
		}
		if i > 0 {
			content = append([]byte("---\n"), content...)
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return nil
}
