package main

import (
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
)

// graph says for each file which others it uses.
type graph map[string]map[string]bool

func (g graph) add(from, to string) {
	if g[from] == nil {
		g[from] = map[string]bool{}
	}
	if g[to] == nil {
		g[to] = map[string]bool{}
	}
	if from != to {
		g[from][to] = true
	}
}

func (g graph) arrows() int {
	n := 0
	for _, to := range g {
		n += len(to)
	}
	return n
}

// files are the nodes, by name.
func (g graph) files() []string { return slices.Sorted(maps.Keys(g)) }

// arrowsOf finds which file of a room uses a declaration of which other one.
func arrowsOf(r *room) graph {
	g := graph{}
	for _, file := range r.syntax {
		from := filepath.Base(r.fset.Position(file.Package).Filename)
		g.add(from, from)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && r.declares(r.info.Uses[id]) {
				g.add(from, filepath.Base(r.fset.Position(r.info.Uses[id].Pos()).Filename))
			}
			return true
		})
	}
	return g
}

// declares says that a room declares an object at the level of the package: fields and the
// methods of interfaces are parts of their types.
func (r *room) declares(o types.Object) bool {
	if o == nil || o.Pkg() != r.pkg {
		return false
	}
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return o.Parent() == r.pkg.Scope()
	}
	return !types.IsInterface(f.Signature().Recv().Type())
}

// upward lists the arrows that lead back in the order of the files.
func upward(g graph) [][2]string {
	at := map[string]int{}
	for i, file := range order(g) {
		at[file] = i
	}
	var back [][2]string
	for _, from := range g.files() {
		for _, to := range slices.Sorted(maps.Keys(g[from])) {
			if at[to] < at[from] {
				back = append(back, [2]string{from, to})
			}
		}
	}
	return back
}

// order puts users before what they use: the groups of files in circles first to last, and
// the files within a group by the heuristic.
func order(g graph) []string {
	var all []string
	for _, group := range components(g) {
		all = append(all, greedy(subgraph(g, group))...)
	}
	return all
}

// subgraph is the part of a graph that these files are.
func subgraph(g graph, files []string) graph {
	part := graph{}
	for _, from := range files {
		part.add(from, from)
		for to := range g[from] {
			if slices.Contains(files, to) {
				part.add(from, to)
			}
		}
	}
	return part
}

// components are the strongly connected components, users first (Tarjan's algorithm gives
// them the other way round).
func components(g graph) [][]string {
	t := tarjan{g: g, index: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, file := range g.files() {
		if t.index[file] == 0 {
			t.visit(file)
		}
	}
	slices.Reverse(t.groups)
	return t.groups
}

type tarjan struct {
	g          graph
	index, low map[string]int // 0 = not visited
	open       map[string]bool
	stack      []string
	groups     [][]string
}

func (t *tarjan) visit(file string) {
	n := len(t.index) + 1
	t.index[file], t.low[file], t.open[file] = n, n, true
	t.stack = append(t.stack, file)
	for _, to := range slices.Sorted(maps.Keys(t.g[file])) {
		if t.index[to] == 0 {
			t.visit(to)
			t.low[file] = min(t.low[file], t.low[to])
		} else if t.open[to] {
			t.low[file] = min(t.low[file], t.index[to])
		}
	}
	if t.low[file] != n {
		return
	}
	first := slices.Index(t.stack, file)
	group := slices.Clone(t.stack[first:])
	t.stack = t.stack[:first]
	for _, one := range group {
		t.open[one] = false
	}
	slices.Sort(group)
	t.groups = append(t.groups, group)
}

// greedy is the heuristic of Eades, Lin and Smyth (1993) for an order with few arrows back:
// files that use nothing any more go last, files that nothing uses go first, and where there
// is neither, the one goes first that uses the most more than it is used.
func greedy(g graph) []string {
	left := map[string]bool{}
	for file := range g {
		left[file] = true
	}
	var first, last []string
	for len(left) > 0 {
		uses, used := map[string]int{}, map[string]int{}
		for from := range left {
			for to := range g[from] {
				if left[to] {
					uses[from]++
					used[to]++
				}
			}
		}
		files := slices.Sorted(maps.Keys(left))
		if i := slices.IndexFunc(files, func(f string) bool { return uses[f] == 0 }); i >= 0 {
			last = append(last, files[i])
			delete(left, files[i])
			continue
		}
		i := slices.IndexFunc(files, func(f string) bool { return used[f] == 0 })
		if i < 0 {
			i = slices.Index(files, slices.MaxFunc(files, func(a, b string) int { return (uses[a] - used[a]) - (uses[b] - used[b]) }))
		}
		first = append(first, files[i])
		delete(left, files[i])
	}
	slices.Reverse(last)
	return append(first, last...)
}
