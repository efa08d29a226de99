// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
)

const (
	// MaxSelectorRequirements is the maximum number of labels and expressions of a node selector.
	MaxSelectorRequirements = 32
	// MaxSelectorValues is the maximum number of values of an expression of a node selector.
	MaxSelectorValues = 64

	// maxRowKey is the maximum length of the key of a row. The names of devices are shorter than the values of attributes.
	maxRowKey = resourceapi.DeviceAttributeMaxValueLength
)

// judge returns the first mistake of the spec, except for mistakes in expressions. It sets the selector and the table. The schema
// of the CRD rejects most of these mistakes; an object of a file has passed no schema.
func (c *compiled) judge(spec *v1alpha1.DeviceAttributesSpec) *Rejection {
	for _, check := range []func(*v1alpha1.DeviceAttributesSpec) error{c.checkNames, c.checkSelector, c.checkAttributes, c.checkTable} {
		if err := check(spec); err != nil {
			return &Rejection{wellknown.ReasonInvalidSpec, shortened(err.Error(), maxMessage)}
		}
	}
	return nil
}

func (c *compiled) checkNames(spec *v1alpha1.DeviceAttributesSpec) error {
	if !isDomain(c.driver) {
		return fmt.Errorf("spec.driver %q must be the name of a driver: a DNS subdomain of at most %d characters", shown(c.driver), resourceapi.DriverNameMaxLength)
	}
	switch {
	case !isDomain(c.domain):
		return fmt.Errorf("spec.domain %q must be a DNS subdomain of at most %d characters", shown(c.domain), resourceapi.DeviceMaxDomainLength)
	case strings.EqualFold(c.domain, c.driver):
		return fmt.Errorf("spec.domain %q is the name of the driver, which publishes in this domain: choose another domain, or leave domain out", c.domain)
	case isReserved(c.domain):
		return fmt.Errorf("spec.domain %q is reserved: choose another domain, or leave domain out", c.domain)
	case c.domain != strings.ToLower(c.domain):
		return fmt.Errorf("spec.domain %q must be a DNS subdomain in lower case", c.domain)
	case len(spec.Attributes) == 0 && spec.Table == nil:
		return errors.New("spec has neither attributes nor table: add one of them")
	}
	return nil
}

// isReserved reports whether no object may use the domain. Attributes of the domain celset.dev would make references to
// constraints allocatable by other schedulers. The meaning of Kubernetes' attributes is the same for all drivers.
func isReserved(domain string) bool {
	domain = strings.ToLower(domain)
	if domain == v1alpha1.AttributeDomain {
		return true
	}
	for _, of := range []string{"k8s.io", "kubernetes.io"} {
		if domain == of || strings.HasSuffix(domain, "."+of) {
			return true
		}
	}
	return false
}

func (c *compiled) checkSelector(spec *v1alpha1.DeviceAttributesSpec) error {
	if err := checkSelectorSize(spec.NodeSelector); err != nil {
		return err
	}
	selector, err := selectorOf(spec.NodeSelector)
	if err != nil {
		return fmt.Errorf("spec.nodeSelector: %w", err)
	}
	c.selector = selector
	return nil
}

func checkSelectorSize(of *metav1.LabelSelector) error {
	if of == nil {
		return nil
	}
	if count := len(of.MatchLabels) + len(of.MatchExpressions); count > MaxSelectorRequirements {
		return fmt.Errorf("spec.nodeSelector has %d labels and expressions, the limit is %d: label the nodes with one label instead", count, MaxSelectorRequirements)
	}
	for i, one := range of.MatchExpressions {
		if len(one.Values) > MaxSelectorValues {
			return fmt.Errorf("spec.nodeSelector.matchExpressions[%d] has %d values, the limit is %d: label the nodes with one label instead", i, len(one.Values), MaxSelectorValues)
		}
	}
	return nil
}

func (c *compiled) checkAttributes(spec *v1alpha1.DeviceAttributesSpec) error {
	if count := len(spec.Attributes); count > v1alpha1.MaxComputedAttributes {
		return fmt.Errorf("spec.attributes has %d attributes, the limit is %d: use another object for the rest", count, v1alpha1.MaxComputedAttributes)
	}
	names := map[string]bool{}
	for i, of := range spec.Attributes {
		if err := checkName(of.Name); err != nil {
			return fmt.Errorf("spec.attributes[%d].name %w", i, err)
		}
		if names[of.Name] {
			return fmt.Errorf("spec.attributes[%d].name %q occurs twice: remove one of the attributes", i, of.Name)
		}
		names[of.Name] = true
		if of.Expression == "" {
			return fmt.Errorf("spec.attributes[%d].expression is missing", i)
		}
	}
	return nil
}

func (c *compiled) checkTable(spec *v1alpha1.DeviceAttributesSpec) error {
	if spec.Table == nil {
		return nil
	}
	if err := checkKey(spec.Table.Key); err != nil {
		return err
	}
	if count := len(spec.Table.Rows); count == 0 || count > v1alpha1.MaxAttributeRows {
		return fmt.Errorf("spec.table.rows has %d rows, the limits are 1 and %d: use another object for the rest", count, v1alpha1.MaxAttributeRows)
	}
	keys := make(map[string]bool, len(spec.Table.Rows))
	for i := range spec.Table.Rows {
		row := &spec.Table.Rows[i]
		if err := checkRow(row); err != nil {
			return fmt.Errorf("spec.table.rows[%d]%w", i, err)
		}
		if keys[row.Key] {
			return fmt.Errorf("spec.table.rows[%d].key %q occurs twice: combine the rows", i, row.Key)
		}
		keys[row.Key] = true
	}
	c.table = newTable(spec.Table, c.qualified)
	return nil
}

func checkKey(key string) error {
	if key == v1alpha1.TableKeyName {
		return nil
	}
	domain, id, isQualified := strings.Cut(key, "/")
	if !isQualified || !isDomain(domain) || checkName(id) != nil {
		return fmt.Errorf("spec.table.key %q must be %q or the qualified name of an attribute, such as gpu.example.com/uuid", shown(key), v1alpha1.TableKeyName)
	}
	return nil
}

// checkRow returns an error that begins with the field below the row.
func checkRow(row *v1alpha1.AttributeRow) error {
	if row.Key == "" || len(row.Key) > maxRowKey {
		return fmt.Errorf(".key must have 1 to %d bytes", maxRowKey)
	}
	if count := len(row.Values); count == 0 || count > v1alpha1.MaxRowValues {
		return fmt.Errorf(".values has %d attributes, the limits are 1 and %d", count, v1alpha1.MaxRowValues)
	}
	for _, name := range slices.Sorted(maps.Keys(row.Values)) {
		if err := checkName(name); err != nil {
			return fmt.Errorf(".values has the name %w", err)
		}
		of := row.Values[name]
		if err := checkValue(&of); err != nil {
			return fmt.Errorf(".values[%s] %w", name, err)
		}
	}
	return nil
}

// checkValue returns an error that begins with a verb. It has the rules of the API server for attributes of a driver.
func checkValue(of *resourceapi.DeviceAttribute) error {
	kinds := 0
	for _, isSet := range []bool{
		of.IntValue != nil, of.BoolValue != nil, of.StringValue != nil, of.VersionValue != nil,
		of.IntValues != nil, of.BoolValues != nil, of.StringValues != nil, of.VersionValues != nil,
	} {
		if isSet {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("has %d values, and must have exactly one of int, bool, string, version, ints, bools, strings and versions", kinds)
	}
	if count := countValues(of); count == 0 || count > resourceapi.ResourceSliceMaxAttributeValuesPerDevice {
		return fmt.Errorf("has a list of %d elements, the limits are 1 and %d", count, resourceapi.ResourceSliceMaxAttributeValuesPerDevice)
	}
	return errors.Join(checkTexts(append(optional(of.StringValue), of.StringValues...), checkText),
		checkTexts(append(optional(of.VersionValue), of.VersionValues...), checkVersion))
}

func optional(text *string) []string {
	if text == nil {
		return nil
	}
	return []string{*text}
}

func checkTexts(texts []string, check func(string) error) error {
	for _, text := range texts {
		if err := check(text); err != nil {
			return err
		}
	}
	return nil
}

func checkText(text string) error {
	if len(text) > resourceapi.DeviceAttributeMaxValueLength {
		return fmt.Errorf("has a string of %d bytes, the limit is %d", len(text), resourceapi.DeviceAttributeMaxValueLength)
	}
	if !utf8.ValidString(text) {
		return errors.New("has a string that is not valid UTF-8")
	}
	return nil
}

func checkVersion(text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	if _, err := semver.Parse(text); err != nil {
		return fmt.Errorf("has the version %q, which is no semantic version such as 1.2.3", text)
	}
	return nil
}

// countValues returns the number of values as the API server counts them: an element of a list counts as a value.
func countValues(of *resourceapi.DeviceAttribute) int {
	if of.IntValues == nil && of.BoolValues == nil && of.StringValues == nil && of.VersionValues == nil {
		return 1
	}
	return max(len(of.IntValues), len(of.BoolValues), len(of.StringValues), len(of.VersionValues))
}

func checkName(name string) error {
	if len(name) > resourceapi.DeviceMaxIDLength || len(validation.IsCIdentifier(name)) > 0 {
		return fmt.Errorf("%q must be a C identifier of at most %d bytes", shown(name), resourceapi.DeviceMaxIDLength)
	}
	return nil
}

// isDomain checks drivers and domains as the API server does, which accepts upper case.
func isDomain(text string) bool {
	return len(text) <= resourceapi.DeviceMaxDomainLength && len(validation.IsDNS1123Subdomain(strings.ToLower(text))) == 0
}

const (
	// maxMessage is the maximum length of the message of a rejection in bytes.
	maxMessage = 1024
	// maxFailure is the maximum length of the message of a failed expression in bytes.
	maxFailure = 256
	// maxShown is the maximum length of a text of a user in a message.
	maxShown = 100
)

func shown(text string) string { return shortened(text, maxShown) }

// shortened returns a text of at most so many bytes, in valid UTF-8.
func shortened(text string, bytes int) string {
	const dots = "..."
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= bytes {
		return text
	}
	end := bytes - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
