// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/policy"
)

// TestConsumption checks the consumption of a device with one capacity.
func TestConsumption(t *testing.T) {
	const whole, fractional = false, true
	for name, test := range map[string]struct {
		value   string
		policy  *resourceapi.CapacityRequestPolicy
		request string // no request if empty
		unit    bool
		want    string // not permitted if empty
		err     error
	}{
		"no request: all":                         {value: "80Gi", want: "80Gi"},
		"no request: default":                     {value: "80Gi", policy: policy.Default("1Gi"), want: "1Gi"},
		"no request: all is not permitted":        {value: "10", policy: policy.Range("1", "5", "")},
		"no policy":                               {value: "80Gi", request: "3Gi", want: "3Gi"},
		"no policy, more than there is":           {value: "1", request: "3", want: "3"},
		"default only":                            {value: "80Gi", policy: policy.Default("1Gi"), request: "3Gi", want: "3Gi"},
		"less than the minimum":                   {value: "10", policy: policy.Range("2", "", ""), request: "1", want: "2"},
		"minimum":                                 {value: "10", policy: policy.Range("2", "", ""), request: "2", want: "2"},
		"more than the minimum":                   {value: "10", policy: policy.Range("2", "", ""), request: "3", want: "3"},
		"maximum":                                 {value: "10", policy: policy.Range("2", "5", ""), request: "5", want: "5"},
		"more than the maximum":                   {value: "10", policy: policy.Range("2", "5", ""), request: "6"},
		"step":                                    {value: "10", policy: policy.Range("1", "9", "4"), request: "2", want: "5"},
		"on a step":                               {value: "10", policy: policy.Range("1", "9", "4"), request: "5", want: "5"},
		"step over the maximum":                   {value: "10", policy: policy.Range("1", "8", "4"), request: "6"},
		"minimum zero":                            {value: "10", policy: policy.Range("0", "", "3"), request: "0", want: "0"},
		"default beside the range":                {value: "10", policy: policy.WithDefault("2", policy.Range("1", "", "4")), want: "2"},
		"valid value":                             {value: "10", policy: policy.OneOf("1", "4"), request: "4", want: "4"},
		"next valid value":                        {value: "10", policy: policy.OneOf("1", "4"), request: "2", want: "4"},
		"more than the valid values":              {value: "10", policy: policy.OneOf("1", "4"), request: "5"},
		"default beside the valid values":         {value: "10", policy: policy.WithDefault("2", policy.OneOf("1", "4")), want: "2"},
		"all, beside the valid values":            {value: "10", policy: policy.OneOf("1", "4")},
		"no minimum":                              {value: "10", policy: policy.Range("", "5", ""), request: "3", want: "3"},
		"no minimum, more than the maximum":       {value: "10", policy: policy.Range("", "5", ""), request: "6"},
		"no minimum, on a step":                   {value: "10", policy: policy.Range("", "", "3"), request: "6", want: "6"},
		"no minimum, between steps":               {value: "10", policy: policy.Range("", "", "3"), request: "5"},
		"step zero":                               {value: "10", policy: policy.Range("1", "", "0"), request: "3", want: "3"},
		"step zero, fractional":                   {value: "10", policy: policy.Range("1", "", "0"), request: "3", unit: fractional, want: "3"},
		"step less than zero":                     {value: "10", policy: policy.Range("1", "", "-1"), request: "3", want: "3"},
		"step too large to be counted":            {value: "10", policy: policy.Range("1", "", "1e20"), request: "3", err: ErrNotRepresentable},
		"step too large, minimum":                 {value: "10", policy: policy.Range("1", "", "1e20"), request: "1", want: "1"},
		"step too large, minimum, fractional":     {value: "10", policy: policy.Range("1", "", "1e20"), request: "1", unit: fractional, want: "1"},
		"step too large, no minimum":              {value: "10", policy: policy.Range("", "", "18446744073709551617"), request: "1"},
		"fractions":                               {value: "2", policy: policy.Range("500m", "2", "250m"), request: "600m", unit: fractional, want: "750m"},
		"fractions that make a whole":             {value: "2", policy: policy.Range("500m", "2", "250m"), request: "900m", unit: fractional, want: "1"},
		"fraction less than the minimum":          {value: "2", policy: policy.Range("500m", "2", "250m"), request: "1m", unit: fractional, want: "500m"},
		"fraction more than the maximum":          {value: "2", policy: policy.Range("500m", "1100m", "250m"), request: "1100m", unit: fractional},
		"fractions, whole range":                  {value: "9", policy: policy.Range("1", "", "2"), request: "1500m", unit: fractional, want: "3"},
		"fractions without the feature":           {value: "9", policy: policy.Range("1", "", "2"), request: "1500m", want: "3"},
		"fractions finer than the unit":           {value: "9", policy: policy.Range("1", "", "2"), request: "1u", unit: fractional, want: "1"},
		"fraction of a milli":                     {value: "9", policy: policy.Range("1", "", "2"), request: "1500u", unit: fractional, want: "1"},
		"fraction of a milli, above the minimum":  {value: "9", policy: policy.Range("0", "", "1"), request: "1500u", unit: fractional, err: ErrNotRepresentable},
		"range finer than a milli counts in ones": {value: "9", policy: policy.Range("1u", "", "2"), request: "2", unit: fractional, want: "3"},
		"fraction of a milli without minimum":     {value: "9", policy: policy.Range("", "", "1"), request: "1500u", unit: fractional},
		"whole: too large":                        {value: "10", policy: policy.Range("1", "", "1"), request: "1e19", err: ErrNotRepresentable},
		"whole: rounded up, too large":            {value: "10", policy: policy.Range("0", "", "2"), request: "9223372036854775807", err: ErrNotRepresentable},
		"milli: too large":                        {value: "10", policy: policy.Range("1", "", "500m"), request: "1e16", unit: fractional, err: ErrNotRepresentable},
		"milli: rounded up, too large":            {value: "10", policy: policy.Range("0", "", "2"), request: "9223372036854775807m", unit: fractional, err: ErrNotRepresentable},
		"negative request":                        {value: "10", request: "-1", err: ErrNegative},
		"negative default":                        {value: "10", policy: policy.Default("-1"), err: ErrNegative},
		"negative value":                          {value: "-1", err: ErrNegative},
		"negative minimum":                        {value: "10", policy: policy.Range("-5", "", "2"), request: "-4", err: ErrNegative},
	} {
		t.Run(name, func(t *testing.T) {
			d := policy.Device(policy.Having("memory", test.value, test.policy))
			var request *resourceapi.CapacityRequirements
			if test.request != "" {
				request = policy.Requesting(nil, "memory", test.request)
			}
			consumed, ok, err := Consumed(&d, request, test.unit)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
				require.ErrorContains(t, err, `capacity "memory": `)
				require.False(t, ok)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want != "", ok)
			if ok {
				amount := consumed["memory"]
				require.Equal(t, test.want, amount.String())
			}
		})
	}
}

func TestConsumptionOfSeveralCapacities(t *testing.T) {
	d := policy.Device(policy.Having("memory", "10", policy.Default("1")), policy.Having("cores", "4", policy.OneOf("1", "2")), policy.Having("link", "1", nil))
	consume := func(request *resourceapi.CapacityRequirements) (Amounts, bool, error) {
		return Consumed(&d, request, false)
	}
	consumed, ok, err := consume(policy.Requesting(nil, "cores", "2"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, consumed, 3)
	for name, want := range map[resourceapi.QualifiedName]int64{"memory": 1, "cores": 2, "link": 1} {
		amount := consumed[name]
		require.Equal(t, want, amount.Value(), name)
	}
	t.Run("unknown name", func(t *testing.T) {
		_, ok, err := consume(policy.Requesting(policy.Requesting(nil, "cores", "2"), "colors", "1"))
		require.NoError(t, err)
		require.False(t, ok)
	})
	// The result must not depend on the random order of a map, so try repeatedly.
	t.Run("error before mismatch", func(t *testing.T) {
		for range 20 {
			_, _, err := consume(policy.Requesting(policy.Requesting(nil, "cores", "3"), "memory", "-1"))
			require.ErrorIs(t, err, ErrNegative)
		}
	})
	t.Run("unknown name before error", func(t *testing.T) {
		_, ok, err := consume(policy.Requesting(policy.Requesting(nil, "colors", "3"), "memory", "-1"))
		require.NoError(t, err)
		require.False(t, ok)
	})
}

// Consumed amounts have the format of the step, as in upstream's allocator.
func TestFormatOfConsumption(t *testing.T) {
	for name, test := range map[string]struct {
		step, want string
		fractional bool
	}{
		"binary":              {"1Gi", "2Gi", false},
		"binary, fractional":  {"1Gi", "2Gi", true},
		"decimal":             {"1073741824", "2147483648", false},
		"decimal, fractional": {"1073741824", "2147483648", true},
	} {
		t.Run(name, func(t *testing.T) {
			amount, err := roundUpInRange(resource.MustParse("1500Mi"), policy.Range("0", "", test.step).ValidRange, test.fractional)
			require.NoError(t, err)
			require.Equal(t, test.want, amount.String())
		})
	}
}

func TestCeilToStep(t *testing.T) {
	const most = math.MaxInt64
	for _, test := range []struct {
		amount, base, step, want int64
		ok                       bool
	}{
		{5, 5, 3, 5, true}, {6, 5, 3, 8, true}, {8, 5, 3, 8, true}, {9, 5, 3, 11, true},
		{most, 0, 1, most, true}, {most, 0, 2, 0, false}, {most, most, 2, most, true}, {most - 1, 1, most - 1, most, true},
		{7, 7, 0, 7, true}, {8, 7, 0, 0, false}, {-3, -5, 4, -1, true},
	} {
		got, ok := ceilToStep(test.amount, test.base, test.step)
		require.Equal(t, test.ok, ok, "%+v", test)
		require.Equal(t, test.want, got, "%+v", test)
	}
}

func TestHasRoom(t *testing.T) {
	d := policy.Device(policy.Having("memory", "10", nil), policy.Having("cores", "4", nil))
	of := func(memory, cores string) Amounts {
		return Amounts{"memory": resource.MustParse(memory), "cores": resource.MustParse(cores)}
	}
	room := func(memory, cores string, shares []Amounts, rest Amounts) bool {
		together := map[resourceapi.QualifiedName]*resource.Quantity{}
		for name, amount := range rest {
			together[name] = &amount
		}
		request := policy.Requesting(policy.Requesting(nil, "memory", memory), "cores", cores)
		enough, err := CanServe(&d, request, false, shares, together)
		require.NoError(t, err)
		for name, amount := range rest {
			require.Zero(t, amount.Cmp(*together[name]), "nothing is added to what others consume")
		}
		return enough
	}
	require.True(t, room("10", "4", nil, nil))
	require.False(t, room("10", "5", nil, nil))
	require.True(t, room("4", "1", []Amounts{of("5", "2")}, of("1", "1")))
	require.False(t, room("4", "1", []Amounts{of("5", "2")}, of("2", "1")))
	require.False(t, room("4", "1", []Amounts{of("5", "2"), of("2", "0")}, nil))
	// Other allocations may consume a capacity that the device no longer has.
	require.True(t, room("4", "1", nil, Amounts{"colors": resource.MustParse("1")}))
	// One capacity suffices and the other does not. Try repeatedly, because the order of a map is random.
	for range 20 {
		require.False(t, room("4", "5", nil, nil))
		require.False(t, room("11", "1", nil, nil))
	}
}

// Exceeded treats the reported consumption of a share like a computed consumption.
func TestOverdrawn(t *testing.T) {
	device := &resourceapi.Device{Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"a": {Value: resource.MustParse("4")}, "b": {Value: resource.MustParse("2")},
	}}
	of := func(a, b string) Amounts { return Amounts{"a": resource.MustParse(a), "b": resource.MustParse(b)} }
	rest := map[resourceapi.QualifiedName]*resource.Quantity{"a": ptr.To(resource.MustParse("1"))}
	for name, test := range map[string]struct {
		consumed Amounts
		shares   []Amounts
		want     resourceapi.QualifiedName
	}{
		"fits":                       {consumed: of("3", "2")},
		"too much beside the rest":   {consumed: of("3500m", "2"), want: "a"},
		"too much beside a share":    {consumed: of("1", "1"), shares: []Amounts{of("1", "1500m")}, want: "b"},
		"too much of both":           {consumed: of("4", "3"), want: "a"},
		"negative":                   {consumed: of("1", "-1"), want: "b"},
		"nothing":                    {shares: []Amounts{of("5", "5")}},
		"what the device has not":    {consumed: Amounts{"c": resource.MustParse("9")}},
		"nothing of what is too few": {consumed: Amounts{"b": resource.MustParse("1")}, shares: []Amounts{{"a": resource.MustParse("9")}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.consumed["a"]
			got, overdrawn := Exceeded(device, test.consumed, test.shares, rest)
			require.Equal(t, test.want, got)
			require.Equal(t, test.want != "", overdrawn)
			require.Equal(t, before, test.consumed["a"], "what is given is not changed")
		})
	}
}
