// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// A column is an attribute in a header of CSV.
type column struct {
	name, kind string
}

// columnKinds are the types that may follow the name of a column, after a colon. They are the fields of an attribute in the API.
// The values of a list are separated by semicolons.
var columnKinds = []string{"int", "bool", "string", "version", "ints", "bools", "strings", "versions"}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)

// fromCSV reads a table in CSV. Its first line names the columns:
//
//	name,x,y,links:strings
//	chip-0,0,0,chip-1;chip-4
//
// The first column has the keys of the devices. Its name is the key of the table, unless --key is set. A type may follow the name
// of any other column. Without a type, a column of ints has ints, a column of true and false has bools, and all others have
// strings. An empty cell adds no attribute.
func fromCSV(text string, o Options) ([]table, []string, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comment, reader.TrimLeadingSpace, reader.ReuseRecord = '#', true, false
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the input is empty: the first line must name the columns, such as name,x,y")
	}
	if err != nil {
		return nil, nil, err
	}
	columns, err := parseHeader(header)
	if err != nil {
		return nil, nil, fmt.Errorf("line 1: %w", err)
	}
	records, lines, err := readRecords(reader)
	if err != nil {
		return nil, nil, err
	}
	for i := range columns {
		if columns[i].kind == "" {
			columns[i].kind = kindOf(records, i+1)
		}
	}
	t := table{driver: o.Driver, key: cmp.Or(o.Key, strings.TrimSpace(header[0]))}
	seen := map[string]int{}
	for i, record := range records {
		r := row{key: strings.TrimSpace(record[0]), values: attributes{}}
		if before := seen[r.key]; before > 0 {
			return nil, nil, fmt.Errorf("line %d: the key %q is already in line %d: write one line for each device", lines[i], r.key, before)
		}
		seen[r.key] = lines[i]
		for j, column := range columns {
			cell := strings.TrimSpace(record[j+1])
			if cell == "" {
				continue
			}
			value, err := parseCell(cell, column.kind)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d, column %s: %w", lines[i], column.name, err)
			}
			r.values[column.name] = value
		}
		if r.key == "" || len(r.values) == 0 {
			return nil, nil, fmt.Errorf("line %d: a line needs a key and at least one value: complete or remove the line", lines[i])
		}
		t.rows = append(t.rows, r)
	}
	return []table{t}, nil, nil
}

func parseHeader(header []string) ([]column, error) {
	if len(header) < 2 || strings.TrimSpace(header[0]) == "" {
		return nil, fmt.Errorf("%d columns: the first column names the key, such as name, and each other column an attribute", len(header))
	}
	if len(header) > 1+v1alpha1.MaxRowValues {
		return nil, fmt.Errorf("%d attributes: a row has at most %d", len(header)-1, v1alpha1.MaxRowValues)
	}
	var columns []column
	for _, title := range header[1:] {
		name, kind, typed := strings.Cut(strings.TrimSpace(title), ":")
		if !identifier.MatchString(name) {
			return nil, fmt.Errorf("column %q: the name of an attribute is a C identifier of at most 32 bytes: rename the column", title)
		}
		if typed && !slices.Contains(columnKinds, kind) {
			return nil, fmt.Errorf("column %q: the type must be one of %s", title, strings.Join(columnKinds, ", "))
		}
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			return nil, fmt.Errorf("column %q occurs twice: remove one of them", name)
		}
		columns = append(columns, column{name, kind})
	}
	return columns, nil
}

func readRecords(reader *csv.Reader) (records [][]string, lines []int, err error) {
	for {
		record, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF) && len(records) == 0:
			return nil, nil, errors.New("no line follows the header: write one line for each device")
		case errors.Is(err, io.EOF):
			return records, lines, nil
		case err != nil:
			return nil, nil, err
		case len(records) == v1alpha1.MaxAttributeRows:
			return nil, nil, fmt.Errorf("more than %d lines: a DeviceAttributes object has at most so many rows: split the file", v1alpha1.MaxAttributeRows)
		}
		line, _ := reader.FieldPos(0)
		records, lines = append(records, record), append(lines, line)
	}
}

// kindOf returns the type of a column: int or bool if all its cells are such values, and string otherwise.
func kindOf(records [][]string, at int) string {
	for _, kind := range []string{"int", "bool"} {
		if !slices.ContainsFunc(records, func(record []string) bool {
			cell := strings.TrimSpace(record[at])
			_, err := parseCell(cell, kind)
			return cell != "" && err != nil
		}) {
			return kind
		}
	}
	return "string"
}

func parseCell(cell, kind string) (value resourceapi.DeviceAttribute, err error) {
	parts := []string{cell}
	if strings.HasSuffix(kind, "s") {
		parts = strings.Split(cell, ";")
	}
	if len(parts) > resourceapi.ResourceSliceMaxAttributeValuesPerDevice {
		return value, fmt.Errorf("%d values: a list has at most %d", len(parts), resourceapi.ResourceSliceMaxAttributeValuesPerDevice)
	}
	for i := range parts {
		if parts[i] = strings.TrimSpace(parts[i]); parts[i] == "" {
			return value, fmt.Errorf("%q has an empty value: separate values by one semicolon", cell)
		}
	}
	switch kind {
	case "int", "ints":
		value.IntValues, err = each(parts, "an int", func(part string) (int64, error) { return strconv.ParseInt(part, 10, 64) })
	case "bool", "bools":
		value.BoolValues, err = each(parts, "true or false", func(part string) (bool, error) {
			if part != "true" && part != "false" {
				return false, errors.New(part)
			}
			return part == "true", nil
		})
	case "version", "versions":
		value.VersionValues, err = each(parts, "a semantic version such as 1.2.3", func(part string) (string, error) {
			_, err := semver.Parse(part)
			return part, err
		})
	default:
		value.StringValues = parts
	}
	if err != nil || strings.HasSuffix(kind, "s") {
		return value, err
	}
	return single(value), nil
}

func each[T any](parts []string, expected string, parse func(string) (T, error)) ([]T, error) {
	var values []T
	for _, part := range parts {
		value, err := parse(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not %s: correct the cell, or set another type in the header", part, expected)
		}
		values = append(values, value)
	}
	return values, nil
}

// single returns the attribute with the only value of a list.
func single(list resourceapi.DeviceAttribute) (value resourceapi.DeviceAttribute) {
	switch {
	case list.IntValues != nil:
		value.IntValue = &list.IntValues[0]
	case list.BoolValues != nil:
		value.BoolValue = &list.BoolValues[0]
	case list.VersionValues != nil:
		value.VersionValue = &list.VersionValues[0]
	default:
		value.StringValue = &list.StringValues[0]
	}
	return value
}
