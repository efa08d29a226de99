// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/meter"
)

// unit is how long a field of a timestamp or a duration stays the same.
type unit int

const (
	millisecond unit = iota
	second
	minute
	hour
	day
	month
	year
)

// fields are CEL's functions that read a part of a timestamp, or how many hours and so on a
// duration has.
var fields = map[string]unit{
	"getFullYear": year, "getMonth": month, "getDate": day, "getDayOfMonth": day, "getDayOfWeek": day, "getDayOfYear": day,
	"getHours": hour, "getMinutes": minute, "getSeconds": second, "getMilliseconds": millisecond,
}

// field follows what reads a part of a value.
func (f *follower) field(part ast.Expr, function string, operands []ast.Expr) rates {
	of := f.of(operands[0])
	f.unmoved(operands[1:]...)
	if !of.moves() {
		return fixed
	}
	unit := fields[function]
	f.watch(part, func(clock *Reading, watched meter.Watched) {
		if types.IsError(watched.Result) {
			return
		}
		for _, rate := range of {
			switch value := watched.First.(type) {
			case types.Timestamp:
				clock.after(timestampField(unit, value, watched.Second, rate))
			case types.Duration:
				clock.after(durationField(unit, value.Duration, rate))
			}
		}
	})
	return fixed
}

// timestampField is after how many ticks a field may have another value; 0 is never.
func timestampField(of unit, value types.Timestamp, zone ref.Val, rate int64) int64 {
	switch {
	case rate == 0 || of == millisecond:
		// Ticks are whole seconds apart.
		return 0
	case rate != 1 || of == second:
		return 1
	}
	at, ok := inZone(value.Time, zone)
	if !ok {
		return 1
	}
	// The nanoseconds don't matter: a field changes with a second.
	left := leftOf(of, at)
	if _, end := at.ZoneBounds(); !end.IsZero() {
		left = min(left, end.Unix()-at.Unix())
	}
	return ceilDiv(max(left, 1), tickSeconds)
}

// leftOf is how many seconds of a year, a month and so on are left, without changes of the
// offset of the zone.
func leftOf(of unit, at time.Time) int64 {
	_, offset := at.Zone()
	local := at.Unix() + int64(offset)
	next := func(years int, months time.Month) int64 {
		return time.Date(at.Year()+years, months, 1, 0, 0, 0, 0, time.UTC).Unix() - local
	}
	switch of {
	case year:
		return next(1, time.January)
	case month:
		return next(0, at.Month()+1)
	case day:
		return 86_400 - floorMod(local, 86_400)
	case hour:
		return 3_600 - floorMod(local, 3_600)
	default:
		return 60 - floorMod(local, 60)
	}
}

// inZone is a time as the zone shows it, which is the second operand of the function if there
// is one. CEL has understood it.
func inZone(t time.Time, zone ref.Val) (time.Time, bool) {
	if zone == nil {
		return t, true
	}
	name, ok := zone.(types.String)
	if !ok {
		return time.Time{}, false
	}
	hours, minutes, isOffset := strings.Cut(string(name), ":")
	if !isOffset {
		loaded, err := meter.Zone(string(name))
		if err != nil {
			return time.Time{}, false
		}
		return t.In(loaded), true
	}
	h, err := strconv.Atoi(hours)
	m, alsoErr := strconv.Atoi(minutes)
	if err != nil || alsoErr != nil || !slices.Contains([]int{-1, 0, 1}, h/24) {
		return time.Time{}, false
	}
	if strings.HasPrefix(hours, "-") {
		m = -m
	}
	return t.In(time.FixedZone("", (h*60+m)*60)), true
}

// durationField is after how many ticks the number of whole hours, minutes or seconds may be
// another; 0 is never.
func durationField(of unit, value time.Duration, rate int64) int64 {
	// CEL computes with floating-point numbers, which may be rounded up before the time has
	// come.
	const rounding = int64(time.Millisecond)
	if rate == 0 {
		return 0
	}
	size := int64(time.Hour)
	switch of {
	case hour:
	case minute:
		size = int64(time.Minute)
	default:
		return 1
	}
	// behind is how far the last whole number is away, left how far the next one is.
	behind, positive := floorMod(int64(value), size), value >= 0
	left := size - behind
	if rate < 0 {
		rate, positive = -rate, value <= 0
		behind, left = left%size, behind
		if left == 0 {
			left = size
		}
	}
	// Numbers are cut towards zero: -2h is left at once on the way up, 2h is not. What is a little
	// more than -2h may be rounded to it, and is left at once, too.
	if behind < rounding && !positive {
		return 1
	}
	return max(1, ceilDiv(max(0, left-rounding), rate*int64(Tick)))
}
