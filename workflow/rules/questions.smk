rule questions:
    output:
        "results/{study}/questions/done.json",
    log:
        "results/{study}/logs/questions.log",
    conda:
        "../../environment.yml"
    params:
        settings=content_hash(SHARED.questions.model_dump(mode="json")),
    shell:
        "exgrpo questions --study {wildcards.study} 2>&1 | tee -i {log}"
