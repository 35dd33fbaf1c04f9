use super::*;

fn point(label: &str, value: Option<f64>) -> ChartPoint {
    ChartPoint {
        label: label.into(),
        value,
        note: String::new(),
    }
}

fn series(points: &[ChartPoint]) -> ChartSeries<'_> {
    ChartSeries {
        id: "rate",
        title: "Failure rate",
        x_label: "Day",
        unit: Unit::Share,
        tone: ChartTone::Bad,
        points,
    }
}

#[test]
fn chart_has_a_name_and_a_data_table() {
    let points = [point("Nov 15", Some(0.25)), point("Nov 16", Some(0.5))];
    let shown = column_chart(series(&points)).into_string();
    assert!(
        shown.contains(r#"<svg role="img" aria-labelledby="rate-title""#),
        "{shown}"
    );
    assert!(
        shown.contains(r#"<h3 id="rate-title">Failure rate</h3>"#),
        "{shown}"
    );
    assert!(
        shown.contains(r#"<th scope="row">Nov 15</th><td class="number">25 %</td>"#),
        "{shown}"
    );
}

#[test]
fn line_is_interrupted_where_values_are_unknown() {
    let points = [
        point("a", Some(0.1)),
        point("b", None),
        point("c", Some(0.2)),
        point("d", Some(0.3)),
    ];
    let shown = line_chart(series(&points)).into_string();
    assert_eq!(shown.matches("class=\"curve is-bad\"").count(), 1);
    assert_eq!(shown.matches("class=\"curve is-bad is-point\"").count(), 1);
    assert!(shown.contains("<title>b: –</title>"), "{shown}");
}

#[test]
fn empty_series_draws_nothing() {
    for shown in [column_chart(series(&[])), line_chart(series(&[]))] {
        assert!(!shown.into_string().contains("NaN"));
    }
}

#[test]
fn chart_labels_are_escaped() {
    let points = [ChartPoint {
        label: "<script>alert(1)</script>".into(),
        value: Some(1.0),
        note: "\"><img src=x onerror=alert(1)>".into(),
    }];
    let shown = column_chart(series(&points)).into_string();
    assert!(
        !shown.contains("<script") && !shown.contains("<img"),
        "{shown}"
    );
}

#[test]
fn coordinates_are_short() {
    assert_eq!(
        [
            format_coordinate(1.0),
            format_coordinate(1.25),
            format_coordinate(0.04)
        ],
        ["1", "1.2", "0"]
    );
}

#[test]
fn attempt_dots_show_all_allowed_attempts() {
    let shown = attempt_dots(2, Some(4), LastAttemptState::UnderWay).into_string();
    assert_eq!(
        (
            shown.matches("done").count(),
            shown.matches("now").count(),
            shown.matches("left").count()
        ),
        (1, 1, 2)
    );
}
