rule evaluate:
    input:
        questions="results/{study}/questions/done.json",
        model=evaluated_model,
    output:
        "results/{study}/evaluations/{run}/done.json",
    log:
        "results/{study}/logs/evaluate/{run}.log",
    benchmark:
        "results/{study}/benchmarks/evaluate/{run}.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS * HARDWARE.processes
    resources:
        **RESOURCES,
    priority: AFTER_TRAINING
    shell:
        "exgrpo evaluate --study {wildcards.study} --run {wildcards.run}"
        + WHERE
        + " 2>&1 | tee -i {log}"
