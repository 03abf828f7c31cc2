rule base_model:
    localrule: True
    output:
        "results/{study}/base/done.json",
    log:
        "results/{study}/logs/base_model.log",
    benchmark:
        "results/{study}/benchmarks/base_model.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=content_hash(SHARED.base.model_dump(mode="json")),
    threads: config["threads"]
    shell:
        "exgrpo base-model --study {wildcards.study} --threads {threads}"
        " 2>&1 | tee -i {log}"
