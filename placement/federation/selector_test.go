// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/federation"
)

var european = labels.Set{"location": "europe", "environment": "prod", "version": "15"}

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		want       bool
	}{
		"in one":                   {`[{"key": "location", "operator": "in", "values": ["europe"]}]`, true},
		"the example":              {`[{"key":"location","operator":"in","values":["europe"]},{"key":"environment","operator":"==","values":["prod"]}]`, true},
		"all must match":           {`[{"key": "location", "operator": "in", "values": ["europe"]}, {"key": "environment", "operator": "==", "values": ["test"]}]`, false},
		"not equal and in":         {`[{"key": "location", "operator": "!=", "values": ["usa"]}, {"key": "environment", "operator": "in", "values": ["prod"]}]`, true},
		"greater":                  {`[{"key": "version", "operator": ">", "values": ["14"]}]`, true},
		"greater is strict":        {`[{"key": "version", "operator": ">", "values": ["15"]}]`, false},
		"less is strict":           {`[{"key": "version", "operator": "<", "values": ["15"]}]`, false},
		"numbers are no texts":     {`[{"key": "version", "operator": "<", "values": ["100"]}]`, true},
		"in several":               {`[{"key": "location", "operator": "In", "values": ["usa", "europe"]}]`, true},
		"not in":                   {`[{"key": "location", "operator": "notin", "values": ["usa", "europe"]}]`, false},
		"not in, absent":           {`[{"key": "rack", "operator": "NotIn", "values": ["1"]}]`, true},
		"not equal, absent":        {`[{"key": "rack", "operator": "!=", "values": ["1"]}]`, true},
		"in, absent":               {`[{"key": "rack", "operator": "in", "values": ["1"]}]`, false},
		"equal, absent":            {`[{"key": "rack", "operator": "=", "values": [""]}]`, false},
		"greater, absent":          {`[{"key": "rack", "operator": "gt", "values": ["1"]}]`, false},
		"less, absent":             {`[{"key": "rack", "operator": "lt", "values": ["1"]}]`, false},
		"greater, no integer":      {`[{"key": "location", "operator": "gt", "values": ["1"]}]`, false},
		"less, no integer":         {`[{"key": "location", "operator": "lt", "values": ["1"]}]`, false},
		"exists":                   {`[{"key": "location", "operator": "exists"}]`, true},
		"exists, empty values":     {`[{"key": "location", "operator": "Exists", "values": []}]`, true},
		"does not exist":           {`[{"key": "location", "operator": "!"}]`, false},
		"does not exist, absent":   {`[{"key": "rack", "operator": "DoesNotExist", "values": null}]`, true},
		"empty value":              {`[{"key": "location", "operator": "in", "values": [""]}]`, false},
		"no requirements":          {`[]`, true},
		"null":                     {`null`, true},
		"unknown fields":           {`[{"key": "location", "operator": "exists", "weight": 3}]`, true},
		"names in any case":        {`[{"KEY": "location", "Operator": "exists"}]`, true},
		"white space":              {"\n [ {\"key\": \"location\",\n\"operator\": \"exists\"} ]\t", true},
		"qualified key":            {`[{"key": "example.com/zone", "operator": "!"}]`, true},
		"the same key twice":       {`[{"key": "version", "operator": "gt", "values": ["10"]}, {"key": "version", "operator": "lt", "values": ["20"]}]`, true},
		"the same key, contradict": {`[{"key": "version", "operator": "gt", "values": ["20"]}, {"key": "version", "operator": "lt", "values": ["10"]}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := federation.Parse(test.annotation)
			require.NoError(t, err)
			require.Equal(t, test.want, selector.Matches(european))

			of := cluster.New(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "paris", Labels: european}})
			verdict, err := selector.Clusters().Match(t.Context(), of, cluster.Hub{})
			require.NoError(t, err)
			require.Equal(t, cluster.Verdict{Matches: test.want}, verdict)
		})
	}
}

// Each spelling of an operator, and what is a spelling of none.
func TestOperators(t *testing.T) {
	for value, operators := range map[string]string{
		``:         `! DoesNotExist exists Exists`,
		`"15"`:     `= == in In != notin NotIn gt Gt > lt Lt <`,
		`"5", "6"`: `in In notin NotIn`,
	} {
		for _, operator := range strings.Fields(operators) {
			_, err := federation.Parse(fmt.Sprintf(`[{"key": "version", "operator": %q, "values": [%s]}]`, operator, value))
			require.NoError(t, err, operator)
		}
	}
	for _, operator := range strings.Fields(`IN iN notIn Notin doesnotexist doesNotExist GT GreaterThan gte >= <= Equals !in ~ EXISTS`) {
		_, err := federation.Parse(fmt.Sprintf(`[{"key": "version", "operator": %q, "values": ["1"]}]`, operator))
		require.ErrorContains(t, err, fmt.Sprintf("%q is not one of the operators", operator))
	}
}

func TestParseErrors(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, test := range map[string]struct {
		annotation string
		message    string
	}{
		"not able to parse":   {`[{"not able to parse",}]`, "must be a JSON list of objects with key, operator and values: invalid character"},
		"empty":               {``, "unexpected end of JSON input"},
		"object":              {`{}`, "cannot unmarshal object"},
		"text":                {`""`, "cannot unmarshal string"},
		"number as value":     {`[{"key": "a", "operator": "in", "values": [1]}]`, "cannot unmarshal number"},
		"one value, no list":  {`[{"key": "a", "operator": "in", "values": "1"}]`, "cannot unmarshal string"},
		"more after it":       {`[] []`, "after top-level value"},
		"label selector":      {`location=europe`, "invalid character"},
		"no operator":         {`[{"key": "a"}]`, `"" is not one of the operators`},
		"null requirement":    {`[null]`, `"" is not one of the operators`},
		"in without values":   {`[{"key": "a", "operator": "in"}]`, "values set can't be empty"},
		"notin, empty values": {`[{"key": "a", "operator": "notin", "values": []}]`, "values set can't be empty"},
		"= without value":     {`[{"key": "a", "operator": "="}]`, "requires one single value"},
		"== with two values":  {`[{"key": "a", "operator": "==", "values": ["1", "2"]}]`, "requires one single value"},
		"!= with two values":  {`[{"key": "a", "operator": "!=", "values": ["1", "2"]}]`, "requires one single value"},
		"exists with value":   {`[{"key": "a", "operator": "exists", "values": ["1"]}]`, "must be empty"},
		"! with value":        {`[{"key": "a", "operator": "!", "values": [""]}]`, "must be empty"},
		"gt without value":    {`[{"key": "a", "operator": "gt"}]`, "exactly one value is required"},
		"lt with two values":  {`[{"key": "a", "operator": "lt", "values": ["1", "2"]}]`, "exactly one value is required"},
		"gt of a text":        {`[{"key": "a", "operator": "gt", "values": ["b"]}]`, "must be an integer"},
		"gt of a fraction":    {`[{"key": "a", "operator": "gt", "values": ["1.5"]}]`, "must be an integer"},
		"gt of hex":           {`[{"key": "a", "operator": "gt", "values": ["0x10"]}]`, "must be an integer"},
		"gt of too much":      {`[{"key": "a", "operator": "gt", "values": ["9223372036854775808"]}]`, "must be an integer"},
		"gt of less than 0":   {`[{"key": "a", "operator": "gt", "values": ["-5"]}]`, "a valid label must be"},
		"no key":              {`[{"operator": "exists"}]`, "name part must be non-empty"},
		"bad key":             {`[{"key": "a b", "operator": "exists"}]`, "name part must consist of"},
		"long key":            {`[{"key": "` + long + `", "operator": "exists"}]`, "must be no more than 63"},
		"bad value":           {`[{"key": "a", "operator": "in", "values": ["ok", "not ok"]}]`, "[0].values[1]"},
		"long value":          {`[{"key": "a", "operator": "in", "values": ["` + long + `"]}]`, "must be no more than 63"},
		"the second one":      {`[{"key": "a", "operator": "exists"}, {"key": "a", "operator": "?"}]`, "[1].operator"},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := federation.Parse(test.annotation)
			require.ErrorContains(t, err, test.message)
			require.ErrorContains(t, err, "metadata.annotations[federation.alpha.kubernetes.io/cluster-selector]")
			require.False(t, selector.Matches(european))
			_, err = federation.ParseAnnotations(map[string]string{federation.ClusterSelectorAnnotation: test.annotation})
			require.Error(t, err)
		})
	}
}

// The ConfigMap of the proposal.
func TestAnnotatedObject(t *testing.T) {
	const manifest = `
apiVersion: v1
data:
  myconfigkey: myconfigdata
kind: ConfigMap
metadata:
  annotations:
    federation.alpha.kubernetes.io/cluster-selector: '[{"key": "location", "operator":
      "in", "values": ["europe"]}, {"key": "environment", "operator": "==", "values":
      ["prod"]}]'
  creationTimestamp: 2017-02-07T19:43:40Z
  name: myconfig
`
	var object corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &object))
	selector, err := federation.ParseAnnotations(object.Annotations)
	require.NoError(t, err)
	require.Equal(t, "environment==prod,location in (europe)", selector.String())
	require.True(t, selector.Matches(european))
	require.False(t, selector.Matches(labels.Set{"location": "europe"}))

	// Without annotation an object is for every cluster, whatever labels there are.
	selector, err = federation.ParseAnnotations(map[string]string{"other": "annotation"})
	require.NoError(t, err)
	require.True(t, selector.Matches(european))
	require.True(t, selector.Matches(labels.Set{}))
}

func TestZeroSelector(t *testing.T) {
	var selector federation.Selector
	require.False(t, selector.Matches(european))
	require.Empty(t, selector.String())
	verdict, err := selector.Clusters().Match(t.Context(), cluster.New(&clusterv1.ManagedCluster{}), cluster.Hub{})
	require.NoError(t, err)
	require.False(t, verdict.Matches)
}
