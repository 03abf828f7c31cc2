rule analyse:
    input:
        catalog="results/{study}/catalog.json",
        queries=QUERIES,
        ledger=LEDGER,
    output:
        directory("results/{study}/analyses"),
    log:
        "results/{study}/logs/analyse.log",
    benchmark:
        "results/{study}/benchmarks/analyse.tsv"
    conda:
        "../../environment.yml"
    shell:
        "exgrpo analyse --study {wildcards.study} 2>&1 | tee -i {log}"
