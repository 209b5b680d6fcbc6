"""``python -m studies.golden_r``, from the repository's root: R's golden numbers against ours."""

from tacit_studies.golden.command import golden

if __name__ == "__main__":
    golden()
