# The catalog itself, results/workbench.duckdb, is not declared: it holds every study, and a
# dashboard may have it open. The stage builds it aside and puts it in place whole.
rule catalog:
    input:
        study="results/{study}/study.json",
        entries=expand("results/lake/entries/{entry}.json", entry=entries()),
    output:
        "results/{study}/catalog.json",
    log:
        "results/{study}/logs/catalog.log",
    conda:
        "../../environment.yml"
    shell:
        "exgrpo catalog --study {wildcards.study} 2>&1 | tee -i {log}"
