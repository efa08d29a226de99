// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/meter"
)

var environment = func() *celgo.Env {
	result, err := celgo.NewEnv(append(Declarations(), celgo.OptionalTypes(), ext.Bindings(), ext.TwoVarComprehensions(), ext.Strings(),
		celgo.Variable("t", celgo.TimestampType), celgo.Variable("d", celgo.DurationType), celgo.Variable("x", celgo.DynType))...)
	if err != nil {
		panic(err)
	}
	return result
}()

func check(t *testing.T, text string) *ast.AST {
	t.Helper()
	checked, issues := environment.Compile(text)
	require.NoError(t, issues.Err(), text)
	return checked.NativeRep()
}

func TestFollow(t *testing.T) {
	for text, want := range map[string]struct {
		stepwise bool
		// watches is how many calls are watched.
		watches int
	}{
		`t < timestamp(0)`:                                {false, 0},
		`now() < t`:                                       {false, 1},
		`now() + d < t && t < now()`:                      {false, 3},
		`t < timestamp(0) || now().getHours() > 3`:        {false, 1}, // and not what compares the hours
		`now().getHours("UTC") in [1, 2]`:                 {false, 1},
		`[now()].map(y, y - t).exists(y, y < d)`:          {false, 2},
		`cel.bind(y, now(), y < t && y > t)`:              {false, 2},
		`cel.bind(now, t, now < t)`:                       {false, 0},
		`(x ? now() : t) < t`:                             {false, 1},
		`{"a": now()}.a < t && {"a": now()}["a"] < t`:     {false, 2},
		`{"a": now()}.?a.orValue(t) < t`:                  {false, 1},
		`optional.of(now()).hasValue()`:                   {false, 0},
		`{"a": now()}.transformMap(k, v, v).a < t`:        {false, 1},
		`has({"a": now()}.a) && size([now()]) == 1`:       {false, 0},
		`type(now()) == type(t)`:                          {false, 0},
		`-dyn(now() - t) < d`:                             {false, 3},
		`now() - (now() - t) < t`:                         {false, 2}, // which does not move
		`string(now()) == ""`:                             {true, 0},
		`int(now()) == 0`:                                 {true, 0},
		`now() in [t]`:                                    {true, 0},
		`{now(): 1}.size() == 1`:                          {true, 0},
		`{t: 1}[now()] == 1`:                              {true, 0},
		`t.getHours(string(now())) == 1`:                  {true, 0},
		`optional.ofNonZeroValue(now()).hasValue()`:       {true, 0},
		`[now()].all(y, string(y) != "")`:                 {true, 0},
		`now() < t && string(now()) == ""`:                {true, 0},
		`[1, 2].transformMap(i, v, now() + d).size() > 1`: {false, 1},
	} {
		got := Follow(check(t, text))
		require.Equal(t, want.stepwise, got.Stepwise, text)
		require.Len(t, got.Watches, want.watches, text)
	}
}

// However loops are nested, and however fast something moves, following it ends.
func TestFollowingEnds(t *testing.T) {
	lists := "[now()]"
	for i := range 30 {
		lists += fmt.Sprintf(".map(y%[1]d, [y%[1]d]", i)
	}
	for _, text := range []string{
		lists + strings.Repeat(")", 30) + ".size() == 1",
		strings.Repeat("[1, 2].map(y, ", 6) + "now() + d" + strings.Repeat(")", 6) + ".size() == 1",
		"[1, 2].all(i, [3].map(j, now() - t).map(y, y + y).map(y, y + y).map(y, y + y).map(y, y + y).all(y, y + y < d))",
		strings.Repeat("(now() - t) + ", 20) + "d < d",
	} {
		f := &follower{checked: check(t, text), watches: map[int64]meter.Watch{}, scope: map[string][]rates{}}
		f.of(f.checked.Expr())
		require.LessOrEqual(t, f.visits, mostVisits+1_000, "those that have begun are left one after the other")
		require.Equal(t, f.lost, Follow(f.checked).Stepwise)
	}
	// As fast as this is not followed.
	require.True(t, Follow(check(t, strings.Repeat("(now() - t) + ", 20)+"d < d")).Stepwise)
	require.False(t, Follow(check(t, strings.Repeat("(now() - t) + ", 10)+"d < d")).Stepwise)
}

// Evaluations tell the clock of their input when their answers change.
func TestWatchesTellTheClock(t *testing.T) {
	planner, err := meter.NewPlanner(environment, meter.Config{})
	require.NoError(t, err)
	variables, err := celgo.NewActivation(map[string]any{"t": noon.Add(time.Hour), "d": time.Hour, "x": noon.Add(2 * time.Hour)})
	require.NoError(t, err)
	for text, want := range map[string]time.Duration{
		`now() >= t`:                                    time.Hour,
		`now() > t`:                                     time.Hour + Tick,
		`t - now() <= d`:                                0,
		`now() + d > x`:                                 time.Hour + Tick,
		`now() - x == d`:                                3 * time.Hour,
		`now() == x`:                                    2 * time.Hour,
		`now() == dyn(1)`:                               0,
		`[now()] == [t]`:                                Tick,
		`optional.of(now()) == optional.of(t)`:          Tick,
		`dyn([now()]) == dyn("a")`:                      Tick,
		`dyn(b"a") != dyn(now())`:                       0,
		`now().getDate("+01:00") == 1`:                  11 * time.Hour,
		`(x - now()).getHours() == 2`:                   Tick,
		`now().getHours("No/Where") == 1`:               0,
		`(dyn(now()) + 1) == 1`:                         0,
		`now() - timestamp("1734-04-22T12:12:44Z") > d`: Tick,
	} {
		checked := check(t, text)
		followed := Follow(checked)
		require.False(t, followed.Stepwise, text)
		program, err := planner.PlanWatched(checked, true, followed.Watches)
		require.NoError(t, err)
		input := &timed{Activation: variables}
		_, _, _ = program.Eval(t.Context(), input, meter.Limits{})
		if period := input.clock.Period(); want == 0 {
			require.Zero(t, period.Until, text)
		} else {
			require.Equal(t, noon.Add(want), period.Until, text)
		}
	}
}

// timed are variables, and the time.
type timed struct {
	celgo.Activation
	clock Reading
}

func (i *timed) ResolveName(name string) (any, bool) {
	if name == Variable {
		return i.clock.Read(func() time.Time { return noon }), true
	}
	return i.Activation.ResolveName(name)
}

func (i *timed) Clock() *Reading { return &i.clock }

// A watch is for inputs with a clock, and for clocks that were read.
func TestWatchesWithoutClock(t *testing.T) {
	for _, watch := range Follow(check(t, `now() < t`)).Watches {
		watch(meter.Watched{First: types.Timestamp{}, Second: types.Timestamp{}, Result: types.False})
		var unread reader
		watch(meter.Watched{Input: &unread, First: types.Timestamp{}, Second: types.Timestamp{Time: time.Unix(1, 0)}, Result: types.True})
		require.Zero(t, unread.Reading)
	}
}

type reader struct {
	celgo.Activation
	Reading
}

func (r *reader) Clock() *Reading { return &r.Reading }
