// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown has the dialect of GitHub. Raw HTML is kept, because some pages mark rows of tables with an "a" element. Tables have no
// style attributes, because the content security policy of the site forbids them.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()),
)

// page is a Markdown file.
type page struct {
	// name is the path of the file, relative to the root of the repository.
	name    string
	content []byte
	root    ast.Node
	title   string
	// anchors has the identifiers of the headings, and of "a" elements. twice lists identifiers that several elements have.
	anchors map[string]bool
	twice   []string
}

// section is a part of the navigation.
type section struct {
	Title string
	Links []link
}

type link struct{ Title, Address string }

func parse(name string, content []byte) *page {
	p := &page{name: name, content: content, root: markdown.Parser().Parse(text.NewReader(content), parser.WithContext(parser.NewContext(parser.WithIDs(identifiers{})))), anchors: map[string]bool{}}
	for node := p.root.FirstChild(); node != nil; node = node.NextSibling() {
		heading, ok := node.(*ast.Heading)
		if !ok {
			continue
		}
		if id, ok := heading.AttributeString("id"); ok {
			p.anchors[string(id.([]byte))] = true
		}
		if p.title == "" {
			p.title = p.textOf(heading)
		}
	}
	for _, match := range anchor.FindAllSubmatch(content, -1) {
		id := string(match[1])
		if p.anchors[id] {
			p.twice = append(p.twice, id)
		}
		p.anchors[id] = true
	}
	return p
}

var anchor = regexp.MustCompile(`<a id="([^"]+)">`)

// address returns the path of the page in the site. A README is the index of its directory.
func (p *page) address() string {
	if path.Base(p.name) == "README.md" {
		return path.Join(path.Dir(p.name), "index.html")
	}
	return strings.TrimSuffix(p.name, ".md") + ".html"
}

// eachLink replaces the destination of each link and image.
func (p *page) eachLink(replace func(destination string) (string, error)) error {
	var errs []error
	visit := func(destination []byte) []byte {
		replaced, err := replace(string(destination))
		errs = append(errs, err)
		return []byte(replaced)
	}
	_ = ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Link:
			node.Destination = visit(node.Destination)
		case *ast.Image:
			node.Destination = visit(node.Destination)
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(errs...)
}

// sections returns the navigation from a page that lists links below headings. The addresses are relative to the page.
func (p *page) sections() []section {
	var result []section
	_ = ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			if node.Level == 2 {
				result = append(result, section{Title: p.textOf(node)})
			}
		case *ast.Link:
			last := len(result) - 1
			if address := string(node.Destination); last >= 0 && !strings.Contains(address, "://") {
				result[last].Links = append(result[last].Links, link{p.textOf(node), path.Join(path.Dir(p.address()), address)})
			}
		}
		return ast.WalkContinue, nil
	})
	return result
}

// textOf returns the text of a node without formatting.
func (p *page) textOf(node ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(node, func(child ast.Node, entering bool) (ast.WalkStatus, error) {
		if leaf, ok := child.(*ast.Text); ok && entering {
			b.Write(leaf.Value(p.content))
			if leaf.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// render returns the page as HTML, with the navigation. The addresses in the navigation are relative to the root of the site.
func (p *page) render(parsed *template.Template, navigation []section) ([]byte, error) {
	var body, result bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.content, p.root); err != nil {
		return nil, err
	}
	own := make([]section, len(navigation))
	for i, one := range navigation {
		own[i].Title = one.Title
		for _, l := range one.Links {
			own[i].Links = append(own[i].Links, link{l.Title, relative(p.address(), l.Address)})
		}
	}
	err := parsed.Execute(&result, map[string]any{
		"Title": p.title, "Body": template.HTML(body.String()), "Navigation": own, "Own": path.Base(p.address()),
		"Root": strings.Repeat("../", strings.Count(p.address(), "/")),
	})
	return result.Bytes(), err
}

// relative returns the address of a page, relative to another page.
func relative(from, to string) string {
	depth := strings.Count(from, "/")
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	common := 0
	for common < depth && common < len(b)-1 && a[common] == b[common] {
		common++
	}
	return strings.Repeat("../", depth-common) + strings.Join(b[common:], "/")
}

// identifiers gives headings the identifiers that they have on GitHub, so that links work there and in the site. The keys are the
// identifiers that are in use.
type identifiers map[string]bool

// Generate implements [parser.IDs].
func (ids identifiers) Generate(heading []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, strings.TrimSpace(string(heading)))
	unique := id
	for i := 1; ids[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", id, i)
	}
	ids[unique] = true
	return []byte(unique)
}

// Put implements [parser.IDs].
func (ids identifiers) Put(value []byte) { ids[string(value)] = true }
