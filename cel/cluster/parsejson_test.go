// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

func TestParseJSON(t *testing.T) {
	for _, expression := range []string{
		`'{"key": "value"}'.parseJSON().key == "value"`,
		`parseJSON('{"key": "value"}').key == "value"`,
		`parseJSON(managedCluster.metadata.annotations.json).gpus[1].count == 2`,
		`managedCluster.metadata.annotations.json.parseJSON().gpus.exists(g, g.count >= 2)`,
		`'{"a": 3}'.parseJSON().a + 1 == 4`,
		`'{"a": 3}'.parseJSON().a == 3 && '{"a": 3}'.parseJSON().a == 3.0 && '{"a": 3}'.parseJSON().a < 3.5`,
		`'{"a": 1.5}'.parseJSON().a + 0.5 == 2.0 && '{"a": 2.0}'.parseJSON().a == 2`,
		`type('3'.parseJSON()) == int && type('3.0'.parseJSON()) == double && type('3e0'.parseJSON()) == double`,
		`'9223372036854775807'.parseJSON() == 9223372036854775807 && type('9223372036854775808'.parseJSON()) == double`,
		`'null'.parseJSON() == null && 'true'.parseJSON() && '"text"'.parseJSON() == "text"`,
		`'[1, "a", [true], null]'.parseJSON() == [1, "a", [true], null]`,
		`'{"a": {"b": [1]}}'.parseJSON() == {"a": {"b": [1]}} && {"a": {"b": [1]}} == '{"a": {"b": [1]}}'.parseJSON()`,
		`'{"a": 1}'.parseJSON().size() == 1 && '[1, 2]'.parseJSON().size() == 2 && !has('{}'.parseJSON().a)`,
		`'{"a": null}'.parseJSON().a == null && has('{"a": null}'.parseJSON().a)`,
		`'[1] '.parseJSON() + [2] == [1, 2] && 2 in '[1, 2]'.parseJSON() && type('{}'.parseJSON()) == map`,
		`!optional.ofNonZeroValue('{}'.parseJSON()).hasValue()`,
	} {
		object := cluster1()
		object.Annotations = map[string]string{"json": `{"gpus": [{"count": 1}, {"count": 2}]}`}
		requireMatch(t, true, expression, cluster.New(object), cluster.Hub{})
	}
}

func TestParseJSONFails(t *testing.T) {
	for expression, message := range map[string]string{
		`"".parseJSON() == 1`:                       "the text is not JSON",
		`"{".parseJSON() == 1`:                      "the text is not JSON",
		`"{'a': 1}".parseJSON().a == 1`:             "the text is not JSON",
		`"1 2".parseJSON() == 1`:                    "the text is not JSON",
		`'{"a": 1}'.parseJSON().b == 1`:             "no such key: b",
		`'[1]'.parseJSON()[1] == 1`:                 "index out of bounds",
		`managedCluster.spec.parseJSON() == 1`:      "no such overload",
		`parseJSON(managedCluster.spec).a == 1`:     "no such overload",
		`dyn(1).parseJSON() == 1`:                   "no such overload",
		`managedCluster.metadata.name.parseJSON()`:  "the text is not JSON",
		`'{"a": 1}'.parseJSON()[1] == 1`:            "no such key: 1",
		`managedCluster.status.parseJSON().a == 42`: "no such overload",
	} {
		_, err := matches(t, expression, cluster.New(cluster1()), cluster.Hub{})
		failure := requireError(t, err, cel.ReasonRuntime)
		require.Contains(t, failure.Message, message, expression)
	}
	for _, expression := range []string{`1.parseJSON() == 1`, `parseJSON() == 1`, `"".parseJSON("") == 1`, `parseJSON("", "") == 1`} {
		_, err := environment.Compile(t.Context(), expressions(expression), nil)
		_ = requireError(t, err, cel.ReasonInvalid)
	}
}
