// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
)

// limit is a line of a table.
type limit struct{ what, value, whose string }

const (
	ours       = "celset"
	upstreams  = "Kubernetes"
	changeable = "argument of the plugin: "
)

// TestLimits writes what the page says of numbers from the constants.
func TestLimits(t *testing.T) {
	checkGenerated(t, filepath.Join("docs", "limits.md"), map[string]string{
		"claim":        table(claimLimits()),
		"expression":   table(expressionLimits(t)),
		"search":       table(searchLimits(t)),
		"turns":        table(turnLimits(t)),
		"sets":         setCounts(),
		"caches":       table(cacheLimits(t)),
		"explanations": table(explanationLimits(t)),
		"placements":   table(placementLimits(t)),
	})
}

// TestDefaultsAgree: who uses the allocator alone has more time than a scheduler, for which
// others wait; an attempt and what is saved up are less than the second that is promised; the
// check of a definition and that of an expression are the same.
func TestDefaultsAgree(t *testing.T) {
	require.Equal(t, configv1alpha1.DefaultCacheSize, allocator.DefaultCacheBytes)
	require.Less(t, uint64(configv1alpha1.DefaultBudgetAttemptCost), allocator.DefaultCostBudget)
	require.Less(t, configv1alpha1.DefaultBudgetAttemptSteps, allocator.DefaultStepBudget)
	require.Less(t, configv1alpha1.DefaultAttemptTimeout+configv1alpha1.DefaultShareBurst, time.Second)
	require.Equal(t, v1alpha1.MaxExpressionLength, cel.MaxExpressionLength)
}

func table(limits []limit) string {
	var text strings.Builder
	text.WriteString("| what | limit | whose |\n|---|---|---|\n")
	for _, l := range limits {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", l.what, l.value, l.whose)
	}
	return text.String()
}

func number[N int | int64 | uint64](n N) string { return grouped9(big.NewInt(int64(n))) }

// grouped9 never rounds.
func grouped9(n *big.Int) string {
	digits := n.String()
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func size(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	default:
		return number(bytes) + " bytes"
	}
}

func claimLimits() []limit {
	return []limit{
		{"devices in a claim", number(resourceapi.AllocationResultsMaxSize), upstreams},
		{"requests in a claim", number(resourceapi.DeviceRequestsMaxSize), upstreams},
		{"alternatives of a request", number(resourceapi.FirstAvailableDeviceRequestMaxSize), upstreams},
		{"selectors of a request", number(resourceapi.DeviceSelectorsMaxSize), upstreams},
		{"constraints, references among them", number(resourceapi.DeviceConstraintsMaxSize), upstreams},
		{"configurations, definitions among them", number(resourceapi.DeviceConfigMaxSize), upstreams},
		{"parameters of a configuration, as JSON", size(resourceapi.OpaqueParametersMaxLength), upstreams},
		{"name of a definition", number(resourceapi.DeviceMaxIDLength) + " characters", upstreams},
		{"preferences that a claim or a class defines", number(v1alpha1.MaxPreferences), ours},
		{"string attribute of a device", number(resourceapi.DeviceAttributeMaxValueLength) + " characters", upstreams},
		{"attributes and capacities of a device", number(resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice), upstreams},
		{"devices in a ResourceSlice", number(resourceapi.ResourceSliceMaxDevices), upstreams},
		{"the same, with lists, taints or counters", number(resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures), upstreams},
	}
}

func expressionLimits(t *testing.T) []limit {
	return []limit{
		{"length", size(int64(cel.MaxExpressionLength)), ours + ", as for device selectors"},
		{"cost of one evaluation, in CEL cost units", number(cel.DefaultCostLimit), ours + ", as for device selectors"},
		{"time that stands for a unit, where calls take longer than CEL charges for", time.Duration(constantOf(t, "cel/meter/meter.go", "nanosecondsPerUnit")).String(), ours},
		{"texts, lists and maps that one evaluation makes", size(int64(cel.DefaultMemoryLimit)) + fmt.Sprintf(", and %d bytes for each unit", meter.BytesPerUnit), ours},
		{"words and signs", number(cel.MaxTokens), ours},
		{"characters that are not ASCII, in texts and comments, too", number(cel.MaxWideCharacters), ours},
		{"parts after macros are expanded", number(cel.MaxNodes), ours},
		{"types that are compared to check it: one for each overload of a call and each element, times the calls before", number(cel.MaxChecks), ours},
		{"levels of nesting", number(cel.MaxDepth), ours},
		{"names in the type of a part", number(cel.MaxTypeSize), ours},
		{"length of a regular expression", size(meter.MaxPatternLength), ours},
		{"time to parse one, by its text: long alternatives that begin alike, large ranges of characters with `(?i)`; and all in an expression together", time.Duration(meter.MaxPatternParsing).String(), ours},
		{"instructions that one is compiled to, and all in an expression together", number(meter.MaxPatternInstructions), ours},
		{"classes such as `\\pL` in one", number(constantOf(t, "cel/meter/pattern.go", "maxClasses")), ours},
		{"groups in one, `(…)` and not `(?:…)`", number(constantOf(t, "cel/meter/pattern.go", "maxGroups")), ours},
		{"exponent of a quantity, besides the characters before it", number(constantOf(t, "cel/meter/quantity.go", "exponentMargin")), ours + ": larger ones are cut"},
		{"cost of a device selector on one device, by its bound", number(costbound.SelectorLimits.Cost), ours},
		{"what a device selector makes on one device, by its bound", size(int64(costbound.SelectorLimits.Bytes)), ours},
		{"expressions of a claim together, with its selectors", fmt.Sprintf("%s, with %s", number(v1alpha1.MaxClaimExpressions), size(v1alpha1.MaxClaimText)), ours},
		{"expressions of all claims of a pod together", fmt.Sprintf("%s, with %s", number(v1alpha1.MaxPodExpressions), size(v1alpha1.MaxPodText)), ours},
		{"devices in the set", number(resourceapi.AllocationResultsMaxSize), "as in a claim"},
		{"elements of a `ring` or `path`", number(library.MaxCircle), ours},
	}
}

func searchLimits(t *testing.T) []limit {
	return []limit{
		{"cost of all evaluations for one node", number(configv1alpha1.DefaultBudgetCost), changeable + "`budget.cost`"},
		{"steps for one node", number(configv1alpha1.DefaultBudgetSteps), changeable + "`budget.steps`"},
		{"cost of all evaluations for all nodes", number(configv1alpha1.DefaultBudgetAttemptCost) + ", at least that for one", changeable + "`budget.attemptCost`"},
		{"steps for all nodes", number(configv1alpha1.DefaultBudgetAttemptSteps) + ", at least those for one", changeable + "`budget.attemptSteps`"},
		{"cost of looking for a better set, for one node", number(configv1alpha1.DefaultPreferenceBudgetCost), changeable + "`preferenceBudget.cost`"},
		{"steps for it", number(configv1alpha1.DefaultPreferenceBudgetSteps), changeable + "`preferenceBudget.steps`"},
		{"the same cost for all nodes", number(configv1alpha1.DefaultPreferenceBudgetAttemptCost) + ", at least that for one", changeable + "`preferenceBudget.attemptCost`"},
		{"the same steps for all nodes", number(configv1alpha1.DefaultPreferenceBudgetAttemptSteps) + ", at least those for one", changeable + "`preferenceBudget.attemptSteps`"},
		{"claims whose sets are kept whole; of one namespace an eighth", number(constantOf(t, "plugin/askedshapes.go", "maxAskedClaims")), ours},
		{"sets of a class that are kept whole", number(allocator.MaxShapesOfClass), ours},
		{"time for one node", configv1alpha1.DefaultFilterTimeout.String(), changeable + "`filterTimeout`"},
		{"time to wait for binding conditions of devices", configv1alpha1.DefaultBindingTimeout.String() +
			", at least " + configv1alpha1.MinBindingTimeout.String(), changeable + "`bindingTimeout`"},
	}
}

func turnLimits(t *testing.T) []limit {
	return []limit{
		{"nodes on which it is found out whom to evict for devices", fmt.Sprintf("%d percent, at least %d", configv1alpha1.DefaultMinCandidateNodesPercentage, configv1alpha1.DefaultMinCandidateNodesAbsolute), changeable + "`devicePreemption`"},
		{"runs of the filters to find out who costs least on a node, beside one for each pod", number(constantOf(t, "allocator/preemption/search.go", "UsualMaxQuestions")), ours},
		{"time for which devices are held, after pods that were evicted have to have ended", configv1alpha1.DefaultHoldTimeout.String() + ", at least " + configv1alpha1.MinHoldTimeout.String(), changeable + "`devicePreemption.holdTimeout`"},
		{"time for which devices are kept of whose allocation nothing is heard", duration(t, "plugin/indoubt/writes.go", "untilGivenUp"), ours},
		{"time for an attempt while others wait", configv1alpha1.DefaultAttemptTimeout.String(), changeable + "`attemptTimeout`"},
		{"back-off after the first attempt over a limit", configv1alpha1.DefaultBackOffInitial.String(), changeable + "`backOff.initial`"},
		{"the longest back-off", configv1alpha1.DefaultBackOffMax.String(), changeable + "`backOff.max`"},
		{"share of a namespace while others wait", number(int(configv1alpha1.DefaultSharePercent)) + " %", changeable + "`share.percent`"},
		{"time that a namespace saves up", configv1alpha1.DefaultShareBurst.String(), changeable + "`share.burst`"},
		{"rest between two counts of sets of devices", configv1alpha1.DefaultFragmentationInterval.String() + ", at least " + configv1alpha1.MinFragmentationInterval.String() + fmt.Sprintf(", and %d times as long as one took", constantOf(t, "plugin/fragmentation.go", "fragmentationRest")), changeable + "`fragmentationInterval`"},
		{"a scheduling cycle without progress", duration(t, "plugin/watchdog/watchdog.go", "DefaultTimeout"), "flag `--cycle-timeout`"},
	}
}

func duration(t *testing.T, file, name string) string {
	return time.Duration(constantOf(t, file, name)).String()
}

// setCounts: how many sets there are for usual numbers.
func setCounts() string {
	text := "| devices wanted, of free ones | sets |\n|---|---|\n"
	for _, n := range [][2]int64{{4, 8}, {4, 16}, {8, 16}, {4, 64}, {8, 32}, {8, 64}, {16, 64}} {
		text += fmt.Sprintf("| %d of %d | %s |\n", n[0], n[1], grouped(new(big.Int).Binomial(n[1], n[0])))
	}
	return text
}

func cacheLimits(t *testing.T) []limit {
	return []limit{
		{"what was found out of devices and claims, together", size(allocator.DefaultCacheBytes), changeable + "`cacheSize`"},
		{"expressions that were read", size(constantOf(t, "allocator/cache.go", "readingBytes")), ours},
		{"compiled constraints, or compiled expressions of Placements", size(cel.DefaultCacheBytes), ours},
		{"claims that were prepared", size(constantOf(t, "plugin/preparing.go", "preparedBytes")), ours},
	}
}

func explanationLimits(t *testing.T) []limit {
	const miss, text = "plugin/nearmiss.go", "allocator/explain/text.go"
	return []limit{
		{"time for the nearest miss of a pod", duration(t, miss, "nearMissTimeout"), ours},
		{"steps for it", number(constantOf(t, miss, "nearMissSteps")), ours},
		{"nodes looked at for it", number(constantOf(t, miss, "nearMissNodes")), ours},
		{"claims named that are in the way", number(constantOf(t, text, "maxListed")), ours},
		{"devices named of each", number(constantOf(t, text, "maxOwned")), ours},
	}
}

func placementLimits(t *testing.T) []limit {
	return []limit{
		{"length of an expression", number(constantOf(t, "cel/cluster/environment.go", "maxCharacters")) + " characters", "CEL"},
		{"words, parts, nesting, types, regular expressions and memory", "as [above](#the-expression)", ours},
		{"expressions of a Placement together", fmt.Sprintf("%s, with %s", number(placement.MaxExpressions), size(placement.MaxExpressionBytes)), ours},
		{"predicates of a Placement, and prioritizers, and decision groups", number(placement.MaxParts), ours},
		{"labels, requirements, values, tolerations and sets of a Placement together", number(placement.MaxValues), ours},
		{"cost of one evaluation on a cluster", number(cel.DefaultCostLimit), ours},
		{"cost of all expressions of a predicate on a cluster", number(cluster.ClusterCostLimit), ours},
		{"elements assumed in a list when costs are estimated", number(constantOf(t, "cel/cluster/cost.go", "assumedSize")), ours},
		{"clusters in a PlacementDecision", number(placement.MaxSliceLength), "Open Cluster Management"},
		{"scores", fmt.Sprintf("%d to %d", placement.MinScore, placement.MaxScore), "Open Cluster Management"},
		{"weight of a prioritizer", "±" + number(constantOf(t, "placement/prioritizer.go", "maxWeight")), "Open Cluster Management"},
		{"spread constraints", number(constantOf(t, "placement/spread.go", "maxSpreadConstraints")), "Open Cluster Management"},
		{"steps of `now()`", cluster.DefaultTick.String(), "argument of celset-placement: `--now-tick`"},
		{"time for the expressions of a predicate on a cluster", placement.DefaultEvaluationTimeout.String(), "argument of celset-placement: `--evaluation-timeout`"},
		{"time for all evaluations of a Placement before others have their turn", controller.DefaultTurn.String(), "argument of celset-placement: `--evaluation-turn`"},
		{"time for all evaluations of a Placement", placement.DefaultTimeout.String(), "argument of celset-placement: `--placement-timeout`"},
		{"cost of all evaluations of a Placement that is not expensive", number(controller.ExpensiveCost), ours},
		{"time until a Placement is tried again that takes too long", duration(t, "placement/controller/pace.go", "firstDelay") + " to " + duration(t, "placement/controller/pace.go", "lastDelay"), ours},
		{"Placements decided at a time", number(controller.DefaultWorkers) + ", and an expensive one", ours},
		{"what is remembered of all Placements together", size(constantOf(t, "placement/memory.go", "memoryBytes")), ours},
		{"length of a condition's message", number(constantOf(t, "placement/condition.go", "maxMessage")) + " bytes", upstreams},
		{"time for one answer of the debug endpoint", duration(t, "placement/debug/handler.go", "DefaultTimeout"), ours},
		{"bytes of a Placement that is sent to it", number(constantOf(t, "placement/debug/decode.go", "maxBody")), ours},
		{"digits and point of an amount that a ManagedCluster reports", number(constantOf(t, "placement/controller/guard_value.go", "maxQuantity")) + ", exponents two", ours},
	}
}

// TestNestedLoops: what the page says of three loops over as many devices as a claim can
// have.
func TestNestedLoops(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	expression, err := environment.Compile(t.Context(), `devices.all(a, devices.all(b, devices.all(c, a.driver == b.driver || b.driver == c.driver)))`)
	require.NoError(t, err)
	var devices []*device.Device
	for i := range resourceapi.AllocationResultsMaxSize {
		devices = append(devices, published(fmt.Sprintf("d%d", i), nil, ""))
	}
	budget := cel.NewBudget(1 << 40)
	satisfied, err := expression.Satisfied(t.Context(), devices, budget)
	require.NoError(t, err)
	require.True(t, satisfied)
	t.Logf("%d CEL cost units", budget.Spent())
	require.InDelta(t, 300_000, budget.Spent(), 100_000)
}
