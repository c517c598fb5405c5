#!/bin/bash

: "${COM_DIR:="/lustre/data/c4/preprocessed_c4_googlespm"}"

C4_6="${COM_DIR}/c4_en_6_c4_spm_text_document"
C4_7="${COM_DIR}/c4_en_7_c4_spm_text_document"
DATA_BLEND="0.5 ${C4_6} 0.5 ${C4_7}"
VALID_DATA_BLEND="1.00 ${COM_DIR}/c4_en_validation_subset_c4_spm_text_document"
