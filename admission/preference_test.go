// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

const indices = "devices.map(d, d.attributes['mla'].index)"

// wanting is the specification of a claim for devices of the class mla, without constraints.
func wanting(count int, config ...string) string {
	return fmt.Sprintf("requests: [{name: r, exactly: {deviceClassName: mla, allocationMode: ExactCount, count: %d}}]\nconfig: [%s]", count, strings.Join(config, ", "))
}

func TestErrorsOfPreferences(t *testing.T) {
	notInt := "Invalid value: ERROR: <input>:1:1: the expression must return int, it returns bool\n | devices == devices\n | ^"
	for name, test := range map[string]struct {
		devices string
		class   string
		errors  []string
	}{
		"right":                           {devices: wanting(2, preferred("p", indices+".max()"))},
		"policy":                          {devices: wanting(2, preferring("name: p, policy: KeepWhole"))},
		"dyn":                             {devices: wanting(2, preferred("p", "devices[0].attributes['mla'].index"))},
		"with variables":                  {devices: wanting(2, preferring("name: p, expression: 'devices.map(d, d.variables.v).max()', variables: [{name: v, expression: device.driver.size()}]"))},
		"beside a constraint of the name": {devices: asking(2, defined("a", "true"), preferred("a", "1"))},
		"no int":                          {devices: wanting(2, preferred("p", "devices == devices")), errors: []string{entry + ".expression: " + notInt}},
		"a text":                          {devices: wanting(2, preferred("p", "''")), errors: []string{entry + ".expression: Invalid value: ERROR: <input>:1:1: the expression must return int, it returns string\n | ''\n | ^"}},
		"a double":                        {devices: wanting(2, preferred("p", "1.5")), errors: []string{entry + ".expression: Invalid value: ERROR: <input>:1:1: the expression must return int, it returns double\n | 1.5\n | ^"}},
		"place": {devices: wanting(2, preferred("p", "1 +\n devices.sice()")), errors: []string{
			entry + ".expression: Invalid value: ERROR: <input>:2:14: undeclared reference to 'sice' (in container '')\n |  devices.sice()\n | .............^"}},
		"a variable": {devices: wanting(2, preferring("name: p, expression: '1', variables: [{name: v, expression: devices.size()}]")), errors: []string{
			entry + ".variables[0].expression: Invalid value: variable v: ERROR: <input>:1:1: a variable is about one device and can't read devices: compare variables in the expression\n | devices.size()\n | ^"}},
		"neither": {devices: wanting(2, preferring("name: p")), errors: []string{
			entry + ".expression: Required value: must be a CEL expression over `devices` that returns an int, unless there is a policy"}},
		"unknown request": {devices: wanting(2, preferring("name: p, expression: '1', requests: [s]")), errors: []string{
			entry + `.requests[0]: Not found: "s": must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'`}},
		"beside a wrong constraint": {devices: asking(2, defined("a", "1"), preferred("p", "true")), errors: []string{
			entry + ".expression: Invalid value: ERROR: <input>:1:1: the expression must return bool, it returns int\n | 1\n | ^",
			"spec.devices.config[1].opaque.parameters.expression: Invalid value: ERROR: <input>:1:1: the expression must return int, it returns bool\n | true\n | ^"}},
		"of a class": {devices: wanting(2, defined("a", "true")), class: preferred("p", "devices == devices"), errors: []string{
			"spec.devices.requests[r].deviceClassName: Invalid value: DeviceClass mla spec.config[0]: " + strings.TrimPrefix(notInt, "Invalid value: ")}},
		"malformed class": {devices: wanting(2), class: preferring("name: p"), errors: []string{
			"spec.devices.requests[0].exactly.deviceClassName: Invalid value: \"mla\": DeviceClass mla: spec.config[0].opaque.parameters.expression: Required value: must be a CEL expression over `devices` that returns an int, unless there is a policy"}},
		"the claim's wins": {devices: wanting(2, preferred("p", "1")), class: preferred("p", "devices == devices")},
	} {
		t.Run(name, func(t *testing.T) {
			classes := fakeClasses{"mla": classOf(t, "mla", "config: ["+test.class+"]")}
			for _, got := range []Verdict{
				judged(newChecker(t, Options{}).Claim(t.Context(), claimOf(t, test.devices), classes)),
				judged(newChecker(t, Options{}).Template(t.Context(), templateOf(claimOf(t, test.devices)), classes)),
			} {
				errors := texts(got.Errors)
				for i := range errors {
					errors[i] = strings.Replace(errors[i], "spec.spec.", "spec.", 1)
				}
				require.ElementsMatch(t, test.errors, errors)
				require.False(t, got.Undecided)
			}
		})
	}
}

// TestWhatAClassPrefersIsJudgedOnce, in however many requests the class is used.
func TestWhatAClassPrefersIsJudgedOnce(t *testing.T) {
	claim := claimOf(t, wanting(1))
	for i := range 30 {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: fmt.Sprint("s", i), Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "mla", Count: 1},
		})
	}
	of := func(class string) Verdict {
		return judged(newChecker(t, Options{}).Claim(t.Context(), claim, fakeClasses{"mla": classOf(t, "mla", "config: ["+class+"]")}))
	}
	for _, class := range []string{preferred("p", "true"), preferring("name: p")} {
		require.Len(t, of(class).Errors, 1)
	}
	claim.Spec.Devices.Requests[7].Exactly.Count = 4
	got := of(preferred("p", "devices.map(d, string(d.attributes['a'].x)).sort().join(',').size()"))
	require.Equal(t, []string{"spec.devices.requests[s6]: p of DeviceClass mla spec.config[0]: the search can't read the preference, and may have 635376 sets of 4 devices on a node: " +
		"it takes the best of those that its budget allows for; write it as docs/constraints.md says"}, got.Warnings)
}

func TestWarningsOfPreferences(t *testing.T) {
	const where = "spec.devices.config[0]: p"
	const unreadable = "devices.map(d, string(d.attributes['a'].x)).sort().join(',').size()"
	all := "requests: [{name: r, exactly: {deviceClassName: mla, allocationMode: All}}, {name: s, firstAvailable: [{name: x, deviceClassName: mla, allocationMode: All}, {name: y, deviceClassName: mla, count: 2}]}]\nconfig: [%s]"
	for name, test := range map[string]struct {
		devices  string
		class    string
		warnings []string
	}{
		"none":   {devices: wanting(4, preferred("p", indices+".max() - "+indices+".min()"))},
		"policy": {devices: wanting(4, preferring("name: p, policy: KeepWhole"))},
		"by index": {devices: wanting(2, preferred("p", "devices.size() -\n\tint(devices[0].attributes['a'].x)")), warnings: []string{
			where + ", line 2, column 13: the value may depend on the order of the devices; a set is evaluated in one order only, that of the requests and the pools"}},
		"expensive": {devices: wanting(32, preferred("p", "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, a == b || c == d || e == a))))) ? 1 : 0")), warnings: []string{
			where + ": one evaluation on 32 devices may cost up to 307401890 CEL cost units, the limit is 1000000; ask for fewer devices or write a cheaper expression"}},
		"unreadable": {devices: wanting(4, preferred("p", unreadable)), warnings: []string{
			where + ": the search can't read the preference, and may have 635376 sets of 4 devices on a node: it takes the best of those that its budget allows for; write it as docs/constraints.md says"}},
		"few sets": {devices: wanting(3, preferred("p", unreadable))},
		"all devices": {devices: fmt.Sprintf(all, preferring("name: p, expression: '1', requests: [r, s/x]")), warnings: []string{
			where + " has no effect: allocationMode: All leaves nothing to choose"}},
		"all devices, by policy": {devices: fmt.Sprintf(all, preferring("name: p, policy: KeepWhole, requests: [r]")), warnings: []string{
			where + " has no effect: allocationMode: All leaves nothing to choose"}},
		"not only all devices": {devices: fmt.Sprintf(all, preferring("name: p, policy: KeepWhole"))},
		"an alternative":       {devices: fmt.Sprintf(all, preferring("name: p, expression: '1', requests: [s]"))},
		"of a class": {devices: wanting(2, defined("a", "true")), class: preferred("p", "int(devices[1].attributes['a'].x)"), warnings: []string{
			`spec.devices.config[0]: no constraint refers to "a", so it does nothing; add matchAttribute: celset.dev/a to spec.devices.constraints`,
			"spec.devices.requests[r]: p of DeviceClass mla spec.config[0], line 1, column 12: the value may depend on the order of the devices; a set is evaluated in one order only, that of the requests and the pools"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := judged(newChecker(t, Options{}).Claim(t.Context(), claimOf(t, test.devices), fakeClasses{"mla": classOf(t, "mla", "config: ["+test.class+"]")}))
			require.Empty(t, got.Errors)
			require.Equal(t, test.warnings, got.Warnings)
		})
	}
	missing := judged(newChecker(t, Options{}).Claim(t.Context(), claimOf(t, wanting(1, preferred("p", "1"))), fakeClasses{}))
	require.Empty(t, append(missing.Warnings, texts(missing.Errors)...), "whoever looks for its devices says that there is no class")
}

func TestPreferencesOfClasses(t *testing.T) {
	checker := newChecker(t, Options{})
	got := judged(checker.Class(t.Context(), classOf(t, "mla", "config: ["+strings.Join([]string{
		defined("p", "true"), preferred("p", "1"), preferring("name: whole, policy: KeepWhole"), preferred("q", "int(devices[0].attributes['a'].x)"),
	}, ", ")+"]")))
	require.Empty(t, got.Errors)
	require.Equal(t, []string{"spec.config[3]: q, line 1, column 12: the value may depend on the order of the devices; a set is evaluated in one order only, that of the requests and the pools"}, got.Warnings)
	got = judged(checker.Class(t.Context(), classOf(t, "mla", "config: ["+preferred("p", "true")+","+preferring("name: q, expression: '1', requests: [r]")+"]")))
	require.Equal(t, []string{
		"spec.config[1].opaque.parameters.requests: Forbidden: a class does not know the requests of claims: leave this out, it is about each request of the class",
		"spec.config[0].opaque.parameters.expression: Invalid value: ERROR: <input>:1:1: the expression must return int, it returns bool\n | true\n | ^",
	}, texts(got.Errors))
}
