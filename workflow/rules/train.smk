# Only the last file of a run is declared: Snakemake deletes declared outputs of a job that failed
# or was killed, and the checkpoints and the log beside it are what the next try goes on from.
# The run's name carries the hash of its settings, so no other run's checkpoint can be found.
#
# A SIGTERM to all processes of the job (a machine that is taken away) ends training after its step,
# with the code 75 (see pipeline/train.py): until then the shell waits and tee goes on writing.
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
    threads: THREADS * HARDWARE.processes
    resources:
        **RESOURCES,
    priority: training_priority
    shell:
        "trap : TERM; "
        "exgrpo train --study {wildcards.study} --run {wildcards.run}"
        + WHERE
        + " 2>&1 | (trap '' TERM; tee -ia {log})"
