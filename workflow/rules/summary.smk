rule summary:
    input:
        "results/{study}/analyses",
    output:
        report(
            "results/{study}/summary.txt",
            caption="../report/summary.rst",
            category="Report",
            labels={"report": "the closing table"},
        ),
    log:
        "results/{study}/logs/summary.log",
    conda:
        "../../environment.yml"
    # Quiet on the terminal: `exgrpo reproduce` prints the table as its last word.
    shell:
        "exgrpo summary --study {wildcards.study} >> {log} 2>&1"
