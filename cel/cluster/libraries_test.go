// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

func TestLibraries(t *testing.T) {
	for name, expression := range map[string]string{
		"optional":            `managedCluster.?nothing.orValue("x") == "x" && [?managedCluster.?nothing].size() == 0`,
		"strings":             `managedCluster.metadata.name.upperAscii() == "CLUSTER1" && "a,b".split(",").join("-") == "a-b"`,
		"strings format":      `"%s is %d".format([managedCluster.metadata.name, 1]) == "cluster1 is 1"`,
		"strings reverse":     `"abc".reverse() == "cba"`,
		"lists":               `[3, 1, 2].max() == 3 && [1, 2].isSorted() && [1, 2].sum() == 3 && [1, 2].indexOf(2) == 1`,
		"regex":               `"v1.30.4".find("[0-9]+") == "1" && "v1.30.4".findAll("[0-9]+").size() == 3`,
		"URLs":                `url("https://example.com:6443/a").getPort() == "6443" && isURL("https://example.com")`,
		"quantity":            `quantity(managedCluster.status.capacity.memory).isGreaterThan(quantity("32Gi")) && isQuantity("1k")`,
		"IP":                  `ip("10.1.2.3").family() == 4 && isIP("::1")`,
		"CIDR":                `cidr("10.0.0.0/8").containsIP("10.1.2.3")`,
		"format":              `!format.named("dns1123Label").value().validate("cluster1").hasValue()`,
		"semver":              `semver("1.2.3").isLessThan(semver("1.2.4")) && semver("1.2.3").major() == 1 && !isSemver("v1")`,
		"semver normalized":   `semver("v1.2", true) == semver("1.2.0") && isSemver("v1.2", true)`,
		"math":                `math.greatest(1, 2, 3) == 3 && math.abs(-1) == 1`,
		"sets":                `sets.contains([1, 2, 3], [2]) && sets.intersects(["a"], ["a", "b"])`,
		"bind":                `cel.bind(v, managedCluster.status.version.kubernetes, v == "v1.30.0")`,
		"two variables":       `managedCluster.metadata.labels.exists(k, v, k == "cloud" && v == "aws")`,
		"two variables, list": `managedCluster.status.clusterClaims.all(i, c, i < 3 && c.name != "")`,
		"transform":           `managedCluster.metadata.labels.transformList(k, v, k + "=" + v).size() == 3`,
		"mixed lists":         `[1, "a", true].size() == 3 && {"a": 1, "b": "c"}.size() == 2`,
		"timestamp":           `timestamp("2026-08-01T12:00:00+02:00").getHours() == 10 && duration("1h") > duration("59m")`,
		"in":                  `managedCluster.metadata.labels.cloud in ["aws", "gcp"] && "env" in managedCluster.metadata.labels`,
		"whole object":        `managedCluster == managedCluster && type(managedCluster) == map && managedCluster.size() == 3`,
	} {
		t.Run(name, func(t *testing.T) {
			requireMatch(t, true, expression, cluster.New(cluster1()), cluster.Hub{})
		})
	}
}

func TestNotInTheLibraries(t *testing.T) {
	for name, expression := range map[string]string{
		"authorizer": `authorizer.path("/").check("get").allowed()`,
		"json patch": `jsonpatch.escapeKey("a/b") == "a~1b"`,
		"devices":    `devices.size() == 1`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := environment.Compile(t.Context(), expressions(expression), nil)
			require.ErrorContains(t, err, "undeclared reference")
		})
	}
}

// Open Cluster Management checks constants when a cluster is evaluated. So an
// expression with a bad one compiles, and fails where the constant matters.
func TestBadConstantsFailWhereTheyMatter(t *testing.T) {
	for expression, message := range map[string]string{
		`managedCluster.metadata.name.matches("[")`:     "missing closing ]",
		`duration("soon") > duration("1m")`:             "type conversion error",
		`timestamp("today") < timestamp("tomorrow")`:    "type conversion error",
		`int("one") == 1 && managedCluster.size() > 0`:  "type conversion error",
		`managedCluster.metadata.name.matches("(?P<a")`: "invalid named capture",
	} {
		_, err := matches(t, expression, cluster.New(cluster1()), cluster.Hub{})
		failure := requireError(t, err, cel.ReasonRuntime)
		require.Contains(t, failure.Message, message)
		requireMatch(t, true, "true || "+expression, cluster.New(cluster1()), cluster.Hub{})
		requireMatch(t, false, "false && "+expression, cluster.New(cluster1()), cluster.Hub{})
	}
}

// Maps are gone through in the order of their keys: the answer is the same each
// time.
func TestOrderOfMaps(t *testing.T) {
	for _, expression := range []string{
		`managedCluster.metadata.labels.map(k, k) == ["cloud", "env", "version"]`,
		`managedCluster.status.capacity.map(k, k) == ["cpu", "memory"]`,
		`managedCluster.map(k, k) == ["metadata", "spec", "status"]`,
		`'{"c": 1, "a": 2, "b": 3}'.parseJSON().map(k, k) == ["a", "b", "c"]`,
	} {
		for range 20 {
			requireMatch(t, true, expression, cluster.New(cluster1()), cluster.Hub{})
		}
	}
}
