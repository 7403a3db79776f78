"""Files as other programs write them become files that scenarios read, or are refused with what mends them."""

from __future__ import annotations

import io
import json
import pickle

import networkx as nx
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.cli import main
from hushnet.simulator.conversion.convert_command import FileMeaning, convert


def converted(tmp_path, content, to, name="theirs.txt", **options):
    """Rows of the file that is made, and what is said."""
    source, out = tmp_path / name, tmp_path / "made.csv"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = convert(source, to, out, FileMeaning(**options))
    return [line.split(",") for line in out.read_text().splitlines()[1:]], "\n".join(said)


def of_networkx(write, graph):
    stream = io.BytesIO()
    write(graph, stream)
    return stream.getvalue()


TRIANGLE = nx.Graph([("a", "b", {"weight": 0.5}), ("b", "c", {"weight": 2.0}), ("c", "a", {"weight": 1.0})])
PLAIN = nx.Graph([("a", "b"), ("b", "c"), ("c", "a")])
WEIGHTED = {("a", "b"): "0.5", ("b", "c"): "2", ("a", "c"): "1"}
EDGES = {
    "graphml": ("g.graphml", of_networkx(nx.write_graphml, TRIANGLE), WEIGHTED),
    "gml": ("g.gml", of_networkx(nx.write_gml, TRIANGLE), WEIGHTED),
    "networkx's edge list with data": ("g.edgelist", of_networkx(nx.write_edgelist, TRIANGLE), WEIGHTED),
    "networkx's weighted edge list": ("g.txt", of_networkx(nx.write_weighted_edgelist, TRIANGLE), WEIGHTED),
    "networkx's edge list without data": (
        "g.txt",
        of_networkx(lambda g, f: nx.write_edgelist(g, f, data=False), TRIANGLE),
        dict.fromkeys(WEIGHTED, "1"),
    ),
    "networkx's adjacency list": ("g.adjlist", of_networkx(nx.write_adjlist, PLAIN), dict.fromkeys(WEIGHTED, "1")),
    "pandas": ("g.csv", nx.to_pandas_edgelist(TRIANGLE).to_csv(), WEIGHTED),
    "both directions": ("g.csv", "src,dst,w\na,b,.5\nb,a,.5\nb,c,2\nc,b,2\na,c,1\nc,a,1\n", WEIGHTED),
    "R's write.table": ("g.txt", '"from" "to" "weight"\n"1" "a" "b" 0.5\n"2" "b" "c" 2\n"3" "c" "a" 1\n', WEIGHTED),
    "a spreadsheet in German": ("g.csv", "Quelle;Ziel;Gewicht\na;b;0,5\nb;c;2,0\nc;a;1,0\n", WEIGHTED),
    "tabs and comments": ("g.tsv", "# made by somebody\na\tb\t0.5\nb\tc\t2\nc\ta\t1\n", WEIGHTED),
    "networkx's node-link data": ("g.json", json.dumps(nx.node_link_data(TRIANGLE)), WEIGHTED),
    "networkx's adjacency data": ("g.json", json.dumps(nx.adjacency_data(TRIANGLE)), WEIGHTED),
    "an agent called client": ("g.txt", "client a\na b\n", {("a", "client"): "1", ("a", "b"): "1"}),
    "R's names with blanks": (
        "g.txt",
        '"from" "to"\n"1" "New York" "Boston"\n"2" "Rome" "Boston"\n',
        {("Boston", "New York"): "1", ("Boston", "Rome"): "1"},
    ),
    "as many columns as edges": (
        "g.csv",
        "source,target,weight,time\n0,1,2,0\n1,2,0.5,0\n2,3,1,0\n0,3,1,0\n",
        {("0", "1"): "2", ("1", "2"): "0.5", ("2", "3"): "1", ("0", "3"): "1"},
    ),
    "a matrix whose rows are counted": ("m.csv", ",a,b,c\n0,0,.5,1\n1,.5,0,2\n2,1,2,0\n", WEIGHTED),
    "a matrix whose rows have a name": ("m.csv", "source,a,b,c\na,0,.5,1\nb,.5,0,2\nc,1,2,0\n", WEIGHTED),
    "a matrix with names": ("m.csv", ",a,b,c\na,0,.5,1\nb,.5,0,2\nc,1,2,0\n", WEIGHTED),
}


@pytest.mark.parametrize("case", EDGES)
def test_a_graph_of_another_program_has_the_edges_that_it_had(case, tmp_path):
    name, content, expected = EDGES[case]
    options = {"weight": "gewicht"} if "German" in case else {}
    rows, said = converted(tmp_path, content, "edges", name, **options)
    assert {tuple(sorted(row[:2])): row[2] for row in rows} == expected
    assert "kind: edge_list" in said


def test_statistics_of_mtr_are_samples_though_their_header_ends_in_a_comma(tmp_path):
    content = "Mtr_Version,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,\nMTR.0.95,OK,x,1,192.0.2.1,0.0,10,0,1.1,12\n"
    assert converted(tmp_path, content, "delays", unit="ms")[0] == [["0.006"]]


HUBS = [{"host": "gw", "Loss%": 0.0, "Avg": 12.0}, {"Loss%": 100.0, "Avg": 0.0}, {"Loss%": 10.0, "Avg": 14.5}]
ATLAS = {"type": "ping", "prb_id": 1, "avg": 13.2, "result": [{"rtt": 12.0}, {"x": "*"}, {"rtt": 14.5}]}
MEASURED = {
    "mtr --json": json.dumps({"report": {"mtr": {"src": "lab", "tests": 10}, "hubs": HUBS}}, indent=4),
    "RIPE Atlas": json.dumps([ATLAS]),
    "RIPE Atlas, a result a line": json.dumps(ATLAS) + "\n",
}


@pytest.mark.parametrize("case", MEASURED)
def test_round_trips_in_json_are_samples_of_half_of_what_it_says(case, tmp_path):
    rows, said = converted(tmp_path, MEASURED[case], "delays", "m.json")
    assert [float(row[0]) for row in rows] == pytest.approx([0.006, 0.00725])
    assert "kind: empirical" in said


def test_edges_without_a_weight_beside_some_that_have_one_weigh_1(tmp_path):
    graph = nx.Graph([("a", "b", {"weight": 0.5}), ("b", "c", {})])
    for name, content in (
        ("g.json", json.dumps(nx.node_link_data(graph))),
        ("g.gml", of_networkx(nx.write_gml, graph)),
    ):
        rows, said = converted(tmp_path, content, "edges", name)
        assert {tuple(row[:2]): row[2] for row in rows} == {("a", "b"): "0.5", ("b", "c"): "1"}
        assert "weights as 'weight'; without one, and so 1: 1 of 2 edges" in said
        (tmp_path / "made.csv").unlink()


def test_a_list_of_links_says_by_minus_one_that_nothing_was_measured(tmp_path):
    rows, said = converted(tmp_path, "1 2 81200\n1 3 -1\n2 3 45500\n", "delays", unit="us")
    assert sorted({row[2] for row in rows}) == ["0.0455", "0.0812"]
    assert "rows without a measurement, left out: 1" in said


def test_a_matrix_without_names_calls_nodes_by_their_place(tmp_path):
    rows, said = converted(tmp_path, "0 1 0 0\n1 0 2 0\n0 2 0 3\n0 0 3 0\n", "edges")
    assert rows == [["0", "1", "1"], ["1", "2", "2"], ["2", "3", "3"]]
    assert "the ids of the scenario's task" not in said


def test_names_in_a_header_keep_their_letters(tmp_path):
    rows, said = converted(tmp_path, ";A;b\nA;0;78\nb;80;0\n", "delays", unit="ms")
    assert [row[:2] for row in rows] == [["A", "b"], ["b", "A"]]
    assert "called A, b:" in said
    (tmp_path / "made.csv").unlink()
    rows, _ = converted(tmp_path, "Source,Target,Big Strength\nA,B,.5\n", "edges", weight="Big Strength")
    assert rows == [["A", "B", "0.5"]]


def test_agents_that_count_from_one_are_said_to_and_renamed_where_asked_for(tmp_path):
    content = "1 2\n2 10\n"
    rows, said = converted(tmp_path, content, "edges")
    assert rows[0][:2] == ["1", "2"]
    assert "--number renames them" in said
    (tmp_path / "made.csv").unlink()
    assert [row[:2] for row in converted(tmp_path, content, "edges", number=True)[0]] == [["0", "1"], ["1", "2"]]


DELAYS = {
    "as many columns as links": (
        "from,to,rtt_ms,loss\n0,1,80,0\n1,0,40,0\n1,2,20,0\n2,1,20,0\n",
        {},
        {("0", "1"): 0.04, ("1", "0"): 0.02, ("1", "2"): 0.01, ("2", "1"): 0.01},
    ),
    "src,dst,rtt": ("src,dst,rtt_ms\na,b,80\nb,a,40\n", {}, {("a", "b"): 0.04, ("b", "a"): 0.02}),
    "one way in seconds": ("sender,receiver,delay\na,b,3\nb,a,1\n", {"unit": "s"}, {("a", "b"): 3, ("b", "a"): 1}),
    "a list without a header": ("0 1 80\n1 0 40\n", {"unit": "us"}, {("0", "1"): 8e-5, ("1", "0"): 4e-5}),
    "one direction": ("from,to,latency_ms\na,b,80\n", {}, {("a", "b"): 0.08, ("b", "a"): 0.08}),
    "a time unit of 80 ms": ("a,b,rtt_ms\nx,y,160\n", {"time_unit": "80 ms"}, {("x", "y"): 1, ("y", "x"): 1}),
    "units in brackets": ("Src IP,Dst IP,RTT [ms]\nx,y,80\ny,x,40\n", {}, {("x", "y"): 0.04, ("y", "x"): 0.02}),
    "names that nobody knows": (
        "Von;Nach;Verzögerung (ms)\nÄ;B;1,5\nB;Ä;2,5\n",
        {},
        {("Ä", "B"): 0.0015, ("B", "Ä"): 0.0025},
    ),
    "statistics of pings": (
        "time,source,destination,min,avg,max\n2020-07-19,x,y,1,4,9\n2020-07-19,y,x,1,2,9\n",
        {"unit": "ms", "round_trip": True},
        {("x", "y"): 0.002, ("y", "x"): 0.001},
    ),
    "a spreadsheet in German, with thousands": (
        "von;nach;Laufzeit [ms]\na;b;1.080,5\nb;a;20,25\n",
        {},
        {("a", "b"): 1.0805, ("b", "a"): 0.02025},
    ),
    "Stata's missing values": ("src,dst,rtt_ms\na,b,80\nb,c,.\nb,a,80\n", {}, {("a", "b"): 0.04, ("b", "a"): 0.04}),
    "a lost measurement": ("src,dst,rtt_ms\na,b,80\nb,c,*\nb,a,80\n", {}, {("a", "b"): 0.04, ("b", "a"): 0.04}),
    "several measurements": (
        "src,dst,rtt_ms\na,b,2\na,b,4\na,b,60\nb,a,2\n",
        {},
        {("a", "b"): 0.002, ("b", "a"): 0.001},
    ),
}


@pytest.mark.parametrize("case", DELAYS)
def test_a_list_of_delays_is_in_time_units_and_one_way(case, tmp_path):
    content, options, expected = DELAYS[case]
    rows, said = converted(tmp_path, content, "delays", **options)
    assert {(row[0], row[1]): float(row[2]) for row in rows} == pytest.approx(expected)
    assert "kind: matrix" in said


def test_a_matrix_of_round_trips_leaves_out_what_was_not_measured(tmp_path):
    matrix = "0 20 30 -1\n20 0 40 50\n30 40 0 60\nnan 50 60 0\n"
    rows, said = converted(tmp_path, matrix, "delays")
    assert len(rows) == 10
    assert [float(row[2]) for row in rows if row[:2] == ["0", "1"]] == [0.01]
    assert "2 links without a measurement" in said
    assert "default: 0.02" in said


PINGS = {
    "Linux": "[1700000000.1] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time={} ms\n",
    "macOS": "64 bytes from 192.0.2.1: icmp_seq=0 ttl=117 time={} ms\nRequest timeout for icmp_seq 1\n",
    "Windows in German": "Antwort von 192.0.2.1: Bytes=32 Zeit={}ms TTL=117\nZeitüberschreitung der Anforderung.\n",
    "Windows, IPv6": "Reply from ::1: time={}ms\nRequest timed out.\n",
    "fping -C": "192.0.2.1 : - {} -\n",
    "fping": "192.0.2.1 : [0], 64 bytes, {} ms (14.2 avg, 0% loss)\n",
}


@pytest.mark.parametrize("case", PINGS)
def test_a_log_of_ping_is_samples_of_half_of_what_it_says(case, tmp_path):
    log = f"PING example.org\n{PINGS[case].format('12.0')}{PINGS[case].format('14.5')}\n--- statistics ---\n"
    rows, said = converted(tmp_path, log, "delays")
    assert [float(row[0]) for row in rows] == pytest.approx([0.006, 0.00725])
    assert "kind: empirical" in said


def test_nodes_without_an_edge_are_said_to_be_left_out(tmp_path):
    graph = nx.Graph([("a", "b")])
    graph.add_node("dora")
    for name, write in (("g.graphml", nx.write_graphml), ("g.adjlist", nx.write_adjlist)):
        assert "leaves out: 1 (dora)" in converted(tmp_path, of_networkx(write, graph), "edges", name)[1]
    assert "leaves out: 1 (dora)" in converted(tmp_path, ",a,b,dora\na,0,1,0\nb,1,0,0\ndora,0,0,0\n", "edges")[1]


def test_fedscales_capacities_and_lists_are_times_of_steps(tmp_path):
    capacities = {"7": {"computation": 160.0, "communication": 5648.1}, "9": {"computation": 40.0}}
    rows, said = converted(tmp_path, json.dumps(capacities), "compute", time_unit="80 ms")
    assert rows == [["7", "2"], ["9", "0.5"]]
    assert "compute: {kind: trace" in said
    (tmp_path / "made.csv").unlink()
    assert converted(tmp_path, "device;duration (s)\na;0,5\na;1,5\n", "compute")[0] == [["a", "0.5"], ["a", "1.5"]]


FEDSCALE = {"7": {"duration": 100, "active": [0, 60], "inactive": [50, 100], "finish_time": 100, "model": "x"}}
PRESENCE = {
    "intervals": (
        "node,start,end\na,0,10\na,20,30\nb,5,6\n",
        {"unit": "s"},
        [("a", 0, 10), ("a", 20, 30), ("b", 5, 6)],
    ),
    "intervals with states": (
        "node;start;end;state\na;0;10;online\na;10;20;offline\nb;1;2;online\n",
        {"unit": "s"},
        [("a", 0, 10), ("b", 1, 2)],
    ),
    "changes": (
        "time_h,client,state\n0,a,up\n1,b,up\n2,a,down\n4,b,down\n",
        {"time_unit": "1 h"},
        [("a", 0, 2), ("b", 1, 4)],
    ),
    "dates": (
        "device,start,end\na,2026-01-01T00:00:00,2026-01-01T01:00:00\nb,2026-01-01T00:30:00,2026-01-01T00:45:00\n",
        {"time_unit": "1 min"},
        [("a", 0, 60), ("b", 30, 45)],
    ),
    "dates in German": (
        "device;online_since;offline_since\na;01.01.2026 00:00;01.01.2026 01:00\n",
        {"time_unit": "1 min"},
        [("a", 0, 60)],
    ),
    "changes with dates": (
        "time,device,event\n2026-01-01T08:00:00Z,p,online\n2026-01-01T09:00:00Z,p,offline\n",
        {"time_unit": "1 h"},
        [("p", 0, 1)],
    ),
    "a column of 0 and 1": ("time_s,node,online\n0,a,1\n10,a,0\n12,a,1\n", {}, [("a", 0, 10)]),
    "the Failure Trace Archive": (
        "#event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time\tevent_stop_time\tend\n"
        "1\t0\t7\t0\tn\t1\t10.0\t20.0\tNULL\n2\t0\t7\t0\tn\t0\t20.0\t25.0\t1\n",
        {},
        [("7", 10, 20)],
    ),
    "durations": ("device_id,login,duration\na,0,5\nb,3,8\n", {"unit": "s"}, [("a", 0, 5), ("b", 3, 11)]),
    "time zones": (
        "node,start,end\na,2024-01-01T00:00:00+01:00,2024-01-01T01:00:00+01:00\nb,2023-12-31T23:30Z,2024-01-01T00:30Z\n",
        {"time_unit": "1 min"},
        [("a", 0, 60), ("b", 30, 90)],
    ),
    "intervals that touch": ("agent,up_from,up_to\na,0,5\na,5,9\n", {"unit": "s"}, [("a", 0, 9)]),
    "FedScale's, as JSON": (json.dumps(FEDSCALE), {"time_unit": "10 s"}, [("7", 0, 5), ("7", 6, 10)]),
}


@pytest.mark.parametrize("case", PRESENCE)
def test_who_was_up_when_is_a_list_of_intervals_in_time_units(case, tmp_path):
    content, options, expected = PRESENCE[case]
    rows, said = converted(tmp_path, content, "availability", **options)
    assert [(row[0], float(row[1]), float(row[2])) for row in rows] == expected
    assert "kind: trace" in said


REFUSED = {
    "a pickle": (pickle.dumps(FEDSCALE), "availability", {}, "json.dump(pickle.load"),
    "bytes": (b"\x00\x01\x02", "edges", {}, "is no text"),
    "nothing": ("# only a comment\n", "edges", {}, "has no line of data"),
    "some edges with a direction": ("a b 1\nb a 1\nb c 1\n", "edges", {}, "add --undirected"),
    "a matrix whose rows stand in another order": (
        ",a,b,c\nc,0,0,1\nb,0,0,0\na,1,0,0\n",
        "edges",
        {},
        "theirs.txt:2: row 1 of the matrix is called 'c', and column 1 'a'",
    ),
    "a matrix of delays with other rows": (
        "from,a,b,c\nb,0,5,6\na,5,0,7\nc,6,7,0\n",
        "delays",
        {"unit": "ms"},
        "row 1 of the matrix is called 'b', and column 1 'a'",
    ),
    "two weights": ("a b 1\nb a 2\n", "edges", {}, "the other way"),
    "gexf": (of_networkx(nx.write_gexf, TRIANGLE), "edges", {}, "nx.read_gexf"),
    "pajek": (of_networkx(nx.write_pajek, TRIANGLE), "edges", {}, "nx.read_pajek"),
    "sparse6": (of_networkx(nx.write_sparse6, PLAIN), "edges", {}, "nx.read_sparse6"),
    "graph6": (of_networkx(nx.write_graph6, nx.cycle_graph(5)), "edges", {}, "nx.read_graph6"),
    "multiline": (of_networkx(nx.write_multiline_adjlist, TRIANGLE), "edges", {}, "nx.read_multiline_adjlist"),
    "other JSON": ('{"a": 1}', "edges", {}, "is no graph of networkx's node_link_data"),
    "a loop": ("a a 1\na b 1\n", "edges", {}, "cannot be its own neighbour"),
    "a weight that is no number": ("source,target,weight\na,b,much\n", "edges", {}, "must be a finite number"),
    "a weight that is not there": ("source,target,weight\na,b,1\n", "edges", {"weight": "strength"}, "--weight"),
    "no unit": ("src,dst,rtt\na,b,80\n", "delays", {}, "add --unit ms"),
    "another unit": ("src,dst,rtt\na,b,80\n", "delays", {"unit": "weeks"}, "admissible: ns, us, ms"),
    "no delay": ("src,dst,bytes\na,b,80\n", "delays", {"unit": "s"}, "rename the one that has the delays"),
    "an end before its begin": ("node,start,end\na,5,1\n", "availability", {"unit": "s"}, "before it begins"),
    "a state without a meaning": (
        "node,time,state\na,5,maybe\n",
        "availability",
        {"unit": "s"},
        "admissible: up, down",
    ),
    "another form": ("a b\n", "models", {}, "admissible: edges, delays, availability, compute"),
    "Matrix Market": (
        "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n",
        "edges",
        {},
        "scipy.io.mmread",
    ),
    "a dense Matrix Market": (
        "%%MatrixMarket matrix array real general\n2 2\n0\n80\n60\n0\n",
        "delays",
        {"unit": "ms"},
        "scipy.io.mmread",
    ),
    "JSON of delays": ('[{"rtt": 1}]', "delays", {"unit": "ms"}, "import pandas; pandas.read_json("),
    "Stata": (b"r\x02\x01\x00data", "delays", {}, "import pandas; pandas.read_stata("),
    "DIMACS": (
        "c a comment\np edge 3 2\ne 1 2\ne 2 3\n",
        "edges",
        {},
        "looks like DIMACS; turn it into a list first: grep",
    ),
    "METIS": ("4 3\n2\n1 3\n2 4\n3\n", "edges", {}, "looks like METIS; turn it into a list first: tail -n +2"),
    "code page 850": (b"a;b\n\x81;2\n", "edges", {}, "iconv -f CP850"),
    "lists of intervals": ('{"a": [[0, 5]]}', "availability", {}, "or a CSV with the columns agent, start, end"),
    "DOT": ("graph {\n a -- b;\n}", "edges", {}, "read_dot"),
    "UTF-16": ("a\tb\n".encode("utf-16"), "edges", {}, "iconv -f UTF-16"),
    "no measurement": ("src,dst,rtt_ms\na,b,*\n", "delays", {}, "no row has a delay"),
    "no capacity": ('{"1": {}}', "compute", {}, "is no file of capacities"),
    "a negative time of a step": ("agent,duration_s\na,-1\n", "compute", {}, "theirs.txt:2: a time of -1 must be"),
    "times of steps without a unit": ("agent,duration\na,1\n", "compute", {}, "add --unit ms"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_what_mends_it(case, tmp_path):
    content, to, options, words = REFUSED[case]
    with pytest.raises(InputError) as caught:
        converted(tmp_path, content, to, **options)
    assert words in str(caught.value)
    assert not (tmp_path / "made.csv").exists()


def test_a_directed_graph_is_refused_until_it_is_said_to_have_no_directions(tmp_path):
    content = of_networkx(nx.write_graphml, nx.DiGraph([("a", "b"), ("b", "c")]))
    with pytest.raises(InputError, match="has a direction"):
        converted(tmp_path, content, "edges", "g.graphml")
    assert len(converted(tmp_path, content, "edges", "g.graphml", undirected=True)[0]) == 2


def test_entities_of_graphml_are_refused(tmp_path):
    bomb = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "a">]><graphml/>'
    with pytest.raises(InputError, match="declares a document type"):
        converted(tmp_path, bomb, "edges", "g.graphml")


def test_what_stands_there_is_not_replaced(tmp_path):
    (tmp_path / "made.csv").write_text("mine\n")
    with pytest.raises(InputError, match="is there, and has something else"):
        converted(tmp_path, "a b\n", "edges")
    assert (tmp_path / "made.csv").read_text() == "mine\n"


SCENARIO = """
schema: 1
scenario: theirs
task: {kind: mean_estimation, agents: 3}
topology: {kind: edge_list, path: edges.csv}
network: {latency: {kind: matrix, path: delays.csv}}
availability: {kind: trace, path: up.csv, others: up}
protocols: {model: {kind: model_propagation, alpha: 0.9}}
stop: {time: 3}
record: {every: 1.0, metrics: [traffic]}
"""


def test_converted_files_run_from_the_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.gml").write_bytes(of_networkx(nx.write_gml, nx.path_graph(3)))
    (tmp_path / "rtt.txt").write_text("0 80 60\n80 0 20\n60 20 0\n")
    (tmp_path / "who.csv").write_text("node,start,end\n1,0,1.5\n1,2,3\n")
    for words in (
        ["g.gml", "--to", "edges", "--out", "edges.csv"],
        ["rtt.txt", "--to", "delays", "--out", "delays.csv", "--time-unit", "80 ms"],
        ["who.csv", "--to", "availability", "--out", "up.csv", "--unit", "s"],
    ):
        assert main(["convert", *words]) == 0
    assert "taken for" in capsys.readouterr().out
    (tmp_path / "theirs.yaml").write_text(SCENARIO)
    assert main(["run", "theirs.yaml", "--quiet"]) == 0
    assert pd.read_parquet(next((tmp_path / "results/theirs").glob("*/trace.parquet")))["vectors"].max() > 0


def test_a_name_of_a_row_without_a_row_is_no_data(tmp_path):
    rows, _ = converted(tmp_path, "from to\n1 x y\n2 y z\n3\n", "edges")
    assert [row[:2] for row in rows] == [["x", "y"], ["y", "z"]]


def test_a_row_that_is_too_short_is_refused_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"theirs.txt:3: has 2 cells; 3 are needed"):
        converted(tmp_path, "node,time,state\na,1,up\na,2\n", "availability", unit="s")
