rule report:
    input:
        analyses="results/{study}/analyses",
        figures="results/{study}/figures",
        templates=TEMPLATES,
    output:
        report(
            "results/{study}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"report": "the whole study on one page"},
        ),
    log:
        "results/{study}/logs/report.log",
    conda:
        "../../environment.yml"
    shell:
        "exgrpo report --study {wildcards.study} 2>&1 | tee -i {log}"
