"""AMD and Ascend tools: outputs published by others, since no such device was at hand."""

from __future__ import annotations

import json

from specconsole.core.hardware.amd import parse_amd_processes, parse_amd_smi, parse_rocm_smi
from specconsole.core.hardware.ascend import parse_npu_processes, parse_npu_smi

MIB = 1024 * 1024

METRIC = {
    "gpu_data": [
        {
            "gpu": 0,
            "usage": {"gfx_activity": {"value": 94, "unit": "%"}, "umc_activity": {"value": 61, "unit": "%"}},
            "power": {"socket_power": {"value": 612, "unit": "W"}, "throttle_status": "UNTHROTTLED"},
            "clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}}},
            "temperature": {"edge": "N/A", "hotspot": {"value": 71, "unit": "C"}, "mem": {"value": 55, "unit": "C"}},
            "mem_usage": {
                "total_vram": {"value": 196592, "unit": "MB"},
                "used_vram": {"value": 17153, "unit": "MB"},
            },
            "ecc": {"total_uncorrectable_count": 0},
        },
        {"gpu": 1, "usage": "N/A", "power": {"socket_power": "N/A"}, "mem_usage": "N/A"},
    ]
}
STATIC = {
    "gpu_data": [
        {
            "gpu": 0,
            "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xC0FFEE"},
            "bus": {"bdf": "0000:05:00.0"},
            "limit": {"ppt0": {"socket_power_limit": {"value": 750, "unit": "W"}}},
        }
    ]
}


def test_amd_smi_of_rocm_7() -> None:
    tick = parse_amd_smi(json.dumps(METRIC), json.dumps(STATIC))
    assert tick is not None
    first, second = tick.gpus
    assert (first.name, first.uuid, first.bus_id) == ("AMD Instinct MI300X", "0xC0FFEE", "0000:05:00.0")
    assert (first.util_pct, first.memory_util_pct, first.power_w, first.power_limit_w) == (94, 61, 612, 750)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (17153 * MIB, 196592 * MIB)
    assert (first.temperature_c, first.sm_clock_mhz, first.ecc_uncorrected) == (71, 2100, 0)
    assert (second.util_pct, second.power_w, second.memory_used_bytes, second.throttle) == (None, None, None, None)


def test_amd_smi_of_rocm_6_is_a_bare_list() -> None:
    tick = parse_amd_smi(json.dumps(METRIC["gpu_data"]))
    assert tick is not None
    assert [gpu.uuid for gpu in tick.gpus] == ["amd-0", "amd-1"]


def test_what_is_no_json_is_none() -> None:
    assert parse_amd_smi("AMDSMI_STATUS_NOT_INIT") is None
    assert parse_amd_smi("[" * 100_000) is None
    assert parse_rocm_smi("ERROR: no AMD GPUs") is None


def test_amd_processes() -> None:
    text = json.dumps(
        [
            {
                "gpu": 0,
                "process_list": [
                    {
                        "process_info": {
                            "name": "python3",
                            "pid": 42,
                            "memory_usage": {"vram_mem": {"value": 1024, "unit": "B"}},
                        }
                    }
                ],
            },
            {"gpu": 1, "process_list": [{"process_info": "No running processes detected"}]},
        ]
    )
    (process,) = parse_amd_processes(text, {0: "0xC0FFEE"})
    assert (process.gpu_uuid, process.pid, process.name, process.used_bytes) == ("0xC0FFEE", 42, "python3", 1024)


def test_rocm_smi_with_warnings_before_its_json() -> None:
    cards = {
        "card1": {
            "GPU use (%)": "83",
            "VRAM Total Memory (B)": "17163091968",
            "VRAM Total Used Memory (B)": "8589934592",
        },
        "card0": {
            "GPU use (%)": "0",
            "Average Graphics Package Power (W)": "N/A (Secondary die)",
            "Current Socket Graphics Package Power (W)": "4.0",
            "Temperature (Sensor edge) (C)": "44.0",
            "sclk clock speed:": "(800Mhz)",
            "Card Series": "Radeon RX 7900 XT",
            "PCI Bus": "0000:C4:00.0",
            "Unique ID": "N/A",
        },
        "system": {"Driver version": "6.16"},
    }
    tick = parse_rocm_smi("WARNING: AMD GPU device(s) is/are in a low-power state.\n" + json.dumps(cards))
    assert tick is not None
    first, second = tick.gpus
    assert (first.uuid, first.power_w, first.temperature_c, first.sm_clock_mhz) == ("0000:C4:00.0", 4.0, 44, 800)
    assert (second.util_pct, second.memory_used_bytes) == (83, 8589934592)


NPU_910C = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.3.rc1                 Version: 25.3.rc1                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 178.9       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 12          0    / 0          57784/ 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | Warning       | -           35                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 0           0    / 0          57831/ 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 692318        | python3                  | 12417                   |
+===========================+===============+====================================================+
| No running processes found in NPU 1                                                            |
"""
NPU_910B = """\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B4-1             | OK            | 91.3        33                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3197 / 65536         |
| 1     910B4-1             | OK            | 88.1        32                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          3197 / 65536         |
"""


def test_ascend_910c_has_two_chips_a_card() -> None:
    tick = parse_npu_smi(NPU_910C)
    assert tick is not None
    first, second = tick.gpus
    assert (first.index, first.util_pct, first.power_w, first.temperature_c) == (0, 12, 178.9, 36)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (57784 * MIB, 65536 * MIB)
    assert (second.index, second.power_w, second.detail) == (1, None, "health: Warning")
    (process,) = parse_npu_processes(NPU_910C)
    assert (process.gpu_uuid, process.pid, process.used_bytes) == ("npu-0-0", 692318, 12417 * MIB)


def test_ascend_910b_is_numbered_as_listed() -> None:
    tick = parse_npu_smi(NPU_910B)
    assert tick is not None
    assert [(gpu.index, gpu.uuid, gpu.name) for gpu in tick.gpus] == [
        (0, "npu-0-0", "910B4-1"),
        (1, "npu-1-0", "910B4-1"),
    ]


def test_ascend_processes_know_their_pid_in_the_container() -> None:
    text = "| NPU     Chip  | Process id    | Process name  | Process memory(MB)  | Process id in container |\n"
    text += "| 0       1     | 692318        | python3       | 12417               | 77                      |\n"
    (process,) = parse_npu_processes(text)
    assert process.pid_in_container == 77
