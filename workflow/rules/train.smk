# Only the last file of a run is declared: Snakemake deletes declared outputs of a job that failed
# or was killed, and the checkpoints and the log beside it are what the next try goes on from.
# The run's name carries the hash of its settings, so no other run's checkpoint can be found.
rule train:
    input:
        questions="results/{study}/questions/done.json",
        base="results/{study}/base/done.json",
        needed=models_needed,
    output:
        "results/{study}/runs/{run}/done.json",
    log:
        "results/{study}/logs/train/{run}.log",
    benchmark:
        "results/{study}/benchmarks/train/{run}.tsv"
    conda:
        "../../environment.yml"
    threads: config["threads"]
    priority: training_priority
    shell:
        "exgrpo train --study {wildcards.study} --run {wildcards.run} --threads {threads}"
        " 2>&1 | tee -i {log}"
