// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/internal/testing/cases"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestMoment(t *testing.T) {
	require.Equal(t, noon, Moment(noon))
	require.Equal(t, noon, Moment(noon.Add(Tick-1).In(time.FixedZone("", 3))))
	require.Equal(t, noon.Add(-Tick), Moment(noon.Add(-1)))
	require.Equal(t, time.Date(1969, 12, 31, 23, 59, 50, 0, time.UTC), Moment(time.Unix(-1, 0)))
	require.Equal(t, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), Moment(time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, time.Date(9999, 12, 31, 23, 59, 50, 0, time.UTC), Moment(time.Unix(math.MaxInt64, 0)))
}

func readAt(t time.Time) *Reading {
	result := &Reading{}
	result.Read(func() time.Time { return t })
	return result
}

func TestReading(t *testing.T) {
	var unread Reading
	unread.Step()
	require.Zero(t, unread, "what was not read does not tick")
	r := readAt(noon.Add(time.Second))
	require.Equal(t, types.Timestamp{Time: noon}, r.Read(func() time.Time { panic("it was read before") }))
	require.True(t, r.WasRead())
	require.Equal(t, Period{From: noon}, r.Period())
	r.after(7)
	r.after(0)
	r.after(9)
	require.Equal(t, Period{From: noon, Until: noon.Add(7 * Tick)}, r.Period())
	r.Step()
	require.Equal(t, Period{From: noon, Until: noon.Add(Tick)}, r.Period())
	far := readAt(noon)
	far.after(farthestTicks + 1)
	require.Zero(t, far.Period().Until)
	last := readAt(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))
	last.Step()
	require.Zero(t, last.Period().Until, "there are no later times")
}

func TestPeriods(t *testing.T) {
	period := func(from, until int) *Period {
		result := &Period{From: noon.Add(time.Duration(from) * Tick)}
		if until > 0 {
			result.Until = noon.Add(time.Duration(until) * Tick)
		}
		return result
	}
	cases.Check(t, func(t *rapid.T) {
		draw := func() *Period {
			if rapid.IntRange(0, 4).Draw(t, "always") == 0 {
				return nil
			}
			from := rapid.IntRange(0, 5).Draw(t, "from")
			return period(from, rapid.SampledFrom([]int{0, from + 1, from + 3}).Draw(t, "until"))
		}
		a, b := draw(), draw()
		both := a.And(b)
		for i := range 12 {
			at := noon.Add(time.Duration(i)*Tick + time.Duration(rapid.Int64Range(0, int64(Tick)-1).Draw(t, "in")))
			require.Equal(t, a.Has(at) && b.Has(at), both.Has(at))
		}
	})
	require.False(t, period(1, 2).Has(noon))
	require.True(t, period(1, 2).Has(noon.Add(2*Tick-1)))
	require.False(t, period(1, 2).Has(noon.Add(2*Tick)))
	require.True(t, period(1, 0).Has(noon.Add(Farthest)))
}

// inNanoseconds is a value as a number.
func (e exact) inNanoseconds() *big.Int {
	result := new(big.Int).Mul(big.NewInt(e.seconds), big.NewInt(nanoseconds))
	return result.Add(result, big.NewInt(e.nanos))
}

var values = rapid.Custom(func(t *rapid.T) ref.Val {
	if rapid.Bool().Draw(t, "duration") {
		return types.Duration{Duration: time.Duration(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3e9, 3e9), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})).Draw(t, "ns"))}
	}
	return types.Timestamp{Time: time.Unix(rapid.OneOf(rapid.Int64Range(firstSecond, lastSecond), rapid.Int64Range(-3, 3)).Draw(t, "s"), rapid.Int64Range(0, nanoseconds-1).Draw(t, "ns"))}
})

func TestExactValues(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		first, second := values.Draw(t, "first"), values.Draw(t, "second")
		a, ok := exactOf(first)
		require.True(t, ok)
		b, ok := exactOf(second)
		require.True(t, ok)
		if d, ok := first.(types.Duration); ok {
			require.Equal(t, big.NewInt(int64(d.Duration)).String(), a.inNanoseconds().String())
		}
		require.Equal(t, new(big.Int).Add(a.inNanoseconds(), b.inNanoseconds()).String(), a.plus(b).inNanoseconds().String())
		require.Equal(t, new(big.Int).Sub(a.inNanoseconds(), b.inNanoseconds()).String(), a.minus(b).inNanoseconds().String())
		require.Equal(t, a.inNanoseconds().Sign(), a.sign())
		require.Equal(t, new(big.Int).Neg(a.inNanoseconds()).String(), a.negated().inNanoseconds().String())
	})
	_, ok := exactOf(types.Int(1))
	require.False(t, ok)
}

// says is what a comparison says.
func (o order) says(sign int) bool { return []bool{o.below, o.equal, o.above}[sign+1] }

// The tick at which a comparison changes is the first one at which it says something else.
func TestComparisonsChangeAtTheFirstTick(t *testing.T) {
	for operator, by := range orders {
		for rate := int64(-3); rate <= 3; rate++ {
			for seconds := int64(-65); seconds <= 65; seconds++ {
				for _, nanos := range []int64{0, 1, nanoseconds - 1} {
					difference, want := exact{seconds, nanos}, int64(0)
					for tick := int64(1); tick < 10 && want == 0; tick++ {
						then := exact{seconds + tick*rate*tickSeconds, nanos}
						if by.says(then.sign()) != by.says(difference.sign()) {
							want = tick
						}
					}
					require.Equal(t, want, by.changes(difference, rate), "%s of %v at %d", operator, difference, rate)
				}
			}
		}
	}
}

// No sum comes to an end of the room before it is said to, and none that is far from it is said
// to be near.
func TestSumsComeToAnEnd(t *testing.T) {
	for within, limits := range map[room][]int64{durations: {math.MinInt64 / nanoseconds, math.MaxInt64 / nanoseconds}, timestamps: {firstSecond, lastSecond}} {
		inside := func(seconds int64) bool { return seconds >= limits[0] && seconds <= limits[1] }
		cases.Check(t, func(t *rapid.T) {
			value := rapid.SampledFrom(limits).Draw(t, "end") + rapid.Int64Range(-500, 500).Draw(t, "off")
			rate := rapid.Int64Range(-2, 2).Draw(t, "rate")
			ticks := within.left(exact{seconds: value}, rate)
			for tick := int64(1); tick < 200 && (ticks == 0 || tick < ticks); tick++ {
				require.Equal(t, inside(value), inside(value+tick*rate*tickSeconds), "%d at %d, after %d of %d", value, rate, tick, ticks)
			}
		})
		require.Zero(t, within.left(exact{seconds: limits[1] + 1_000}, 1))
		require.Greater(t, within.left(exact{seconds: limits[1] - 1_000_000}, 1), int64(99_000))
		require.Zero(t, within.left(exact{}, 0))
	}
}

var functions = []string{"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"}

// A field has the same value until the tick at which it may change.
func TestFieldsOfTimes(t *testing.T) {
	exactly := 0
	cases.Until(t, cases.Of(50, 1000), func() bool { return exactly > 0 }, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "+12:45", "-00:30", "23:59", "47:00", "-99:00"}).Draw(t, "zone")
		at := time.Unix(rapid.OneOf(rapid.Int64Range(firstSecond, lastSecond), rapid.Int64Range(1_700_000_000, 1_900_000_000)).Draw(t, "s"), rapid.Int64Range(0, nanoseconds-1).Draw(t, "ns")).UTC()
		function := rapid.SampledFrom(functions).Draw(t, "function")
		var second ref.Val
		args := []ref.Val{}
		if zone != "" {
			second = types.String(zone)
			args = append(args, second)
		}
		read := func(ticks int64) ref.Val {
			return types.Timestamp{Time: at.Add(time.Duration(ticks) * Tick)}.Receive(function, "", args)
		}
		ticks := timestampField(fields[function], types.Timestamp{Time: at}, second, 1)
		if ticks == 0 {
			require.Equal(t, "getMilliseconds", function)
			ticks = 100
		}
		for _, tick := range []int64{1, 2, ticks / 3, ticks / 2, ticks - 2, ticks - 1, rapid.Int64Range(0, ticks-1).Draw(t, "tick")} {
			if tick >= 0 && tick < ticks {
				require.Equal(t, read(0), read(tick), "%s(%s) of %s after %d of %d ticks", function, zone, at, tick, ticks)
			}
		}
		if read(ticks) != read(0) {
			exactly++
		}
	})
	require.EqualValues(t, 1, timestampField(hour, types.Timestamp{Time: noon}, nil, 2), "what moves faster is not followed")
	require.EqualValues(t, 1, timestampField(hour, types.Timestamp{Time: noon}, types.Int(1), 1))
	require.EqualValues(t, 1, timestampField(hour, types.Timestamp{Time: noon}, types.String("No/Where"), 1))
	require.Zero(t, timestampField(hour, types.Timestamp{Time: noon}, nil, 0))
}

// A number of hours stays until the tick at which it may change.
func TestFieldsOfDurations(t *testing.T) {
	exactly := 0
	cases.Until(t, cases.Of(50, 1000), func() bool { return exactly > 0 }, func(t *rapid.T) {
		near := rapid.SampledFrom([]time.Duration{0, 0, time.Hour, -time.Hour, 50 * time.Hour, -time.Minute, 2_000_000 * time.Hour, -2_000_000 * time.Hour}).Draw(t, "near")
		value := near + time.Duration(rapid.Int64Range(-400, 400).Draw(t, "s"))*time.Second + time.Duration(rapid.Int64Range(-1, 1).Draw(t, "ns"))
		function := rapid.SampledFrom(functions[6:]).Draw(t, "function")
		rate := rapid.SampledFrom([]int64{1, -1, 2, -3}).Draw(t, "rate")
		read := func(ticks int64) ref.Val {
			return types.Duration{Duration: value + time.Duration(ticks*rate)*Tick}.Receive(function, "", nil)
		}
		ticks := durationField(fields[function], value, rate)
		require.Positive(t, ticks)
		for tick := range ticks {
			require.Equal(t, read(0), read(tick), "%s of %s at %d after %d of %d ticks", function, value, rate, tick, ticks)
		}
		if ticks > 1 && read(ticks) != read(0) {
			exactly++
		}
	})
	require.Zero(t, durationField(hour, time.Hour, 0))
	require.EqualValues(t, 1, durationField(hour, -2_000_000*time.Hour+1, 1), "it is rounded to -2000000, and left at once")
}

func TestRates(t *testing.T) {
	require.False(t, fixed.moves())
	require.Equal(t, rates{-1, 0}, timely.or(fixed).negated())
	require.Equal(t, rates{0, 1, 2}, rates{0, 1}.plus(rates{0, 1}))
	require.False(t, rates{-fastestRate, fastestRate}.excessive())
	require.True(t, rates{fastestRate + 1}.excessive())
	require.True(t, slices.Repeat(rates{1}, mostRates+1).excessive())
}

// What is no time, or can't be added, is not watched further.
func TestSumsOfSomethingElse(t *testing.T) {
	at, hour := types.Timestamp{Time: noon}, types.Duration{Duration: time.Hour}
	for function, all := range map[string][]meter.Watched{
		operators.Negate: {{First: types.Int(1)}},
		operators.Add:    {{First: at, Second: types.Int(1)}, {First: types.Int(1), Second: at}},
	} {
		for _, of := range all {
			_, _, ok := added(function, of)
			require.False(t, ok)
		}
	}
	value, within, ok := added(operators.Subtract, meter.Watched{First: at, Second: at})
	require.True(t, ok)
	require.Zero(t, value)
	require.Equal(t, durations, within)
	_, within, _ = added(operators.Add, meter.Watched{First: hour, Second: at})
	require.Equal(t, timestamps, within)
	value, within, _ = added(operators.Negate, meter.Watched{First: hour})
	require.Equal(t, durations, within)
	require.Equal(t, exact{seconds: -3600}, value)
}
