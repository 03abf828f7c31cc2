rule figures:
    input:
        "results/{study}/analyses",
    output:
        report(
            directory("results/{study}/figures"),
            patterns=["{name}.svg"],
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
    log:
        "results/{study}/logs/figures.log",
    conda:
        "../../environment.yml"
    shell:
        "exgrpo figures --study {wildcards.study} 2>&1 | tee -i {log}"
