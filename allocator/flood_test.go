// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// Whoever may create claims may create any number of them, each with another expression, as
// large as it may be, and with other attributes, selectors and devices in use. What is
// remembered of them stays within its bounds, and so does the memory of the process; others
// are told what they were told before.
func TestFloodOfClaims(t *testing.T) {
	const limit, compiled = 8 << 20, 4 << 20
	rounds := cases.Of(30, 300)
	environment, err := device.NewEnvironment(cel.Config{CacheBytes: compiled})
	require.NoError(t, err)
	cache := NewCache(CacheBytes(limit))
	quiet := mixedFleet()
	questions := quiet.questions()
	want := make([]answer, len(questions))
	askAll := func(check func(int, answer)) {
		a := quiet.allocator(t, 0, WithCache(cache), WithEnvironment(environment))
		for i, q := range questions {
			check(i, quiet.ask(t.Context(), a, q))
		}
	}
	askAll(func(i int, got answer) { want[i] = got })

	hostile := newFleet(1)
	hostile.classes[driver] = classOf(driver)
	for n := range 4 {
		hostile.addNode(slice("1", wide(64, 12, n)...))
	}
	padding := strings.Repeat("devices.all(d, d.driver != 'none') && ", 60)
	for n := range rounds {
		attribute := fmt.Sprintf("attribute-%d", n%12)
		text := fmt.Sprintf("%s devices.all(d, has(d.attributes['mla.example.com'].index) && d.attributes['mla.example.com']['%s'] != '%d') && "+
			"devices.map(d, string(d.attributes['mla.example.com'].index) + '%s').distinct().size() == 3", padding, attribute, n, strings.Repeat("x", 500))
		hostile.addPod(claim("c").want("x", 3, fmt.Sprintf("%s != %d", index, n)).cel("set").define("set", text))
	}
	before := heap()
	said := int64(0)
	for _, q := range hostile.questions() {
		// One for each claim, as in a scheduler: it keeps what it needs for its claims.
		asked := hostile.allocator(t, 0, WithCache(cache), WithEnvironment(environment), WithReasons())
		hostile.ask(t.Context(), asked, q)
		require.LessOrEqual(t, cache.Used(), int64(limit))
		require.LessOrEqual(t, readings.Used(), int64(readingBytes))
		said = max(said, cache.Used())
	}
	taken := heap() - before
	t.Logf("%d bytes are taken, %d are said", taken, said)
	require.Greater(t, said, int64(limit/2), "it is a flood")
	require.Less(t, taken, int64(limit+compiled+readingBytes)+64<<20)
	require.Less(t, taken, 2*(cache.Used()+readings.Used())+2*compiled)
	askAll(func(i int, got answer) { quiet.requireSame(t, questions[i], want[i], got) })
	runtime.KeepAlive(hostile)
}
