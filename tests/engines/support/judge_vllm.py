"""What vLLM 0.32 makes of argument lists: the parser of `vllm serve` and its configuration; run by its own Python."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    import judging
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    def judge(args):
        found = make_arg_parser(FlexibleArgumentParser(prog="vllm serve")).parse_args(args)
        validate_parsed_serve_args(found)
        config = AsyncEngineArgs.from_cli_args(found).create_engine_config()
        told = {
            "max_model_len": config.model_config.max_model_len,
            "max_num_seqs": config.scheduler_config.max_num_seqs,
        }
        spec = config.speculative_config
        if spec is not None:
            told["method"], told["num_speculative_tokens"] = spec.method, spec.num_speculative_tokens
            draft = spec.draft_model_config
            told["draft_max_model_len"] = draft.max_model_len if draft is not None else None
            told["per_batch_size"] = str(spec.num_speculative_tokens_per_batch_size)
            told["rejection_sample_method"] = spec.rejection_sample_method
        return told

    judging.answer(judge)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
