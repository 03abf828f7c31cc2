# After the base model, whose tokenizer makes the prompts. The descriptions of the data sets are part
# of the settings: an edit makes the questions anew. Their files are not: `done.json` has the hashes.
rule questions:
    localrule: True
    input:
        base="results/{study}/base/done.json",
    output:
        "results/{study}/questions/done.json",
    log:
        "results/{study}/logs/questions.log",
    conda:
        "../../environment.yml"
    params:
        settings=questions_hash(SHARED),
        data_sets=DATA_SETS,
    shell:
        "exgrpo questions --study {wildcards.study} 2>&1 | tee -i {log}"
