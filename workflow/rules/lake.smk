rule lake:
    input:
        logs_of_entry,
    output:
        "results/lake/entries/{entry}.json",
    log:
        "results/lake/logs/{entry}.log",
    wildcard_constraints:
        entry="|".join(map(re.escape, entries())),
    conda:
        "../../environment.yml"
    params:
        study=STUDY.name,
    priority: AFTER_TRAINING
    shell:
        "exgrpo lake --study {params.study} --entry {wildcards.entry} 2>&1 | tee -i {log}"
