// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/featuregate"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cmd/internal/skew"
)

// The feature gates of kube-scheduler that the allocator uses, with their stages per version. They are copied, because an
// import would include all of kube-scheduler. A test compares the copies with the originals.
const (
	adminAccess             featuregate.Feature = "DRAAdminAccess"
	compatibilityGroups     featuregate.Feature = "DRADeviceCompatibilityGroups"
	consumableCapacity      featuregate.Feature = "DRAConsumableCapacity"
	derivedAttributes       featuregate.Feature = "DRADerivedAttributes"
	bindingConditions       featuregate.Feature = "DRADeviceBindingConditions"
	deviceStatus            featuregate.Feature = "DRAResourceClaimDeviceStatus"
	deviceTaints            featuregate.Feature = "DRADeviceTaints"
	fractionalCapacityRange featuregate.Feature = "DRAFractionalCapacityRange"
	listTypeAttributes      featuregate.Feature = "DRAListTypeAttributes"
	optionalNodeOperations  featuregate.Feature = "DRAOptionalNodeOperations"
	partitionableDevices    featuregate.Feature = "DRAPartitionableDevices"
	prioritizedList         featuregate.Feature = "DRAPrioritizedList"
)

// newest is the version of Kubernetes whose allocator code this program uses.
var newest = version.MajorMinor(1, 37)

var gateVersions = map[featuregate.Feature]featuregate.VersionedSpecs{
	adminAccess:         {alpha(32), beta(34, true), ga(36)},
	compatibilityGroups: {alpha(37)},
	consumableCapacity:  {alpha(34), beta(36, true)},
	derivedAttributes:   {alpha(37)},
	bindingConditions:   {alpha(34), beta(36, true)},
	deviceStatus:        {alpha(32), beta(33, true), ga(37)},
	deviceTaints:        {alpha(33), beta(36, true), unlocked(ga(37))},
	// In 1.37 this gate is on by default only if all components have at least that version.
	fractionalCapacityRange: {beta(37, false), sinceAll(beta(37, true))},
	listTypeAttributes:      {alpha(36)},
	optionalNodeOperations:  {alpha(37)},
	partitionableDevices:    {alpha(33), beta(36, true)},
	prioritizedList:         {alpha(33), beta(34, true), unlocked(ga(36)), ga(37)},
}

func alpha(minor uint) featuregate.FeatureSpec {
	return featuregate.FeatureSpec{Version: version.MajorMinor(1, minor), PreRelease: featuregate.Alpha}
}

func beta(minor uint, on bool) featuregate.FeatureSpec {
	return featuregate.FeatureSpec{Version: version.MajorMinor(1, minor), PreRelease: featuregate.Beta, Default: on}
}

func ga(minor uint) featuregate.FeatureSpec {
	return featuregate.FeatureSpec{Version: version.MajorMinor(1, minor), PreRelease: featuregate.GA, Default: true, LockToDefault: true}
}

// unlocked returns the spec of a gate that users can still turn off, although the feature is GA.
func unlocked(spec featuregate.FeatureSpec) featuregate.FeatureSpec {
	spec.LockToDefault = false
	return spec
}

// sinceAll returns a spec that applies only if all components of the cluster have at least its version.
func sinceAll(spec featuregate.FeatureSpec) featuregate.FeatureSpec {
	spec.MinCompatibilityVersion = spec.Version
	return spec
}

// gates holds the feature gates of the scheduler that the program simulates.
type gates struct {
	featuregate.MutableVersionedFeatureGate
}

func newGates() gates {
	g := gates{featuregate.NewVersionedFeatureGate(newest)}
	if err := g.AddVersioned(gateVersions); err != nil {
		panic(err) // the table above contradicts itself
	}
	return g
}

// follow sets the defaults of the gates to the defaults of the Kubernetes version that the API server offers, as
// celset-scheduler does.
func (g gates) follow(ctx context.Context, client discovery.DiscoveryInterface) error {
	offered, err := skew.Version(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	if err := skew.Check(offered); err != nil {
		return err
	}
	if offered.GreaterThan(newest) {
		return nil
	}
	if err := g.SetEmulationVersion(offered); err != nil {
		return fmt.Errorf("--feature-gates, with an API server that offers Kubernetes %s: %w", offered, err)
	}
	return nil
}

// addFlag adds kube-scheduler's flag --feature-gates, so that users can copy the scheduler's value. Gates without an effect in
// this program cause only a warning.
func (g gates) addFlag(flags *pflag.FlagSet, errOut io.Writer) {
	g.AddFlag(flags)
	flag := flags.Lookup("feature-gates")
	flag.Value = &lenientGates{flag.Value, g, errOut}
}

type lenientGates struct {
	pflag.Value
	gates  gates
	errOut io.Writer
}

// Set implements [pflag.Value].
func (l *lenientGates) Set(value string) error {
	var known, ignored []string
	for gate := range strings.SplitSeq(value, ",") {
		name, setting, _ := strings.Cut(gate, "=")
		name = strings.TrimSpace(name)
		_, isKnown := l.gates.GetAll()[featuregate.Feature(name)]
		if _, err := strconv.ParseBool(strings.TrimSpace(setting)); isKnown || err != nil || name == "AllAlpha" || name == "AllBeta" {
			known = append(known, gate)
		} else {
			ignored = append(ignored, name)
		}
	}
	if len(ignored) > 0 {
		_, _ = fmt.Fprintf(l.errOut, "warning: --feature-gates: these gates have no effect here: %s\n", strings.Join(ignored, ", "))
	}
	return l.Value.Set(strings.Join(known, ","))
}

// features computes the allocator's features from the gates, as the scheduler's plugin does.
func (g gates) features() structured.Features {
	return structured.Features{
		AdminAccess:             g.Enabled(adminAccess),
		CompatibilityGroups:     g.Enabled(compatibilityGroups),
		ConsumableCapacity:      g.Enabled(consumableCapacity),
		DerivedAttributes:       g.Enabled(derivedAttributes),
		DeviceBindingAndStatus:  g.Enabled(bindingConditions) && g.Enabled(deviceStatus),
		DeviceTaints:            g.Enabled(deviceTaints),
		FractionalCapacityRange: g.Enabled(fractionalCapacityRange),
		ListTypeAttributes:      g.Enabled(listTypeAttributes),
		OptionalNodeOperations:  g.Enabled(optionalNodeOperations),
		PartitionableDevices:    g.Enabled(partitionableDevices),
		PrioritizedList:         g.Enabled(prioritizedList),
	}
}
