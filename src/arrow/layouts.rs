//! Macros that call a kernel for a layout that is known only at run time. The layout is looked up once for each block,
//! so that callers are compiled once for all layouts.

/// Calls a kernel with the type of a layout that kernels read; 0 for other layouts.
macro_rules! read_rows {
    ($layout:expr, $Layout:ident => $call:expr) => {{
        use $crate::formats::headers::{iggy::Iggy, iggy_2023::Iggy2023};
        use $crate::kernel::{layout::LayoutName, typed_layout::TypedLayout, varint_layout::VarintLayout};
        match $layout {
            LayoutName::Varint => {
                type $Layout = VarintLayout;
                $call
            }
            LayoutName::Iggy => {
                type $Layout = TypedLayout<Iggy>;
                $call
            }
            LayoutName::Iggy2023 => {
                type $Layout = TypedLayout<Iggy2023>;
                $call
            }
            LayoutName::Kip82 | LayoutName::NoKernels => 0,
        }
    }};
}
pub(super) use read_rows;

/// Calls a kernel with the type of a layout that kernels write; 0 for other layouts.
macro_rules! write_rows {
    ($layout:expr, $Layout:ident => $call:expr) => {{
        match $layout {
            $crate::kernel::layout::LayoutName::Kip82 => {
                type $Layout = $crate::kernel::typed_layout::Kip82Layout;
                $call
            }
            layout => $crate::arrow::layouts::read_rows!(layout, $Layout => $call),
        }
    }};
}
pub(super) use write_rows;
