//! A neural network with named inputs and outputs.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::port::SenseError;
use rten::{
    Model, ModelOptions, OpRegistry, RunOptions, ThreadPool, Value, ValueOrView, op_registry,
};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::network::{read, unusable};
use crate::worker::failed;

/// A network and the threads that compute it.
pub(crate) struct Graph {
    model: Model,
    threads: Arc<ThreadPool>,
}

impl Graph {
    /// Reads an ONNX file.
    pub(crate) fn load(path: &Path, threads: &Arc<ThreadPool>) -> Result<Self, SenseError> {
        let model = ModelOptions::with_ops(operators()).load(read(path)?);
        let model = model.map_err(|error| unusable(path, &error))?;
        Ok(Self { model, threads: Arc::clone(threads) })
    }

    /// True if the network has an input or a value of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.model.find_node(name).is_some()
    }

    /// Computes the named outputs.
    pub(crate) fn run(
        &self,
        inputs: Vec<(&str, ValueOrView<'_>)>,
        outputs: &[&str],
    ) -> Result<Vec<Value>, SenseError> {
        let named = |name: &str| self.model.node_id(name).map_err(|error| failure(&error));
        let inputs = inputs.into_iter().map(|(name, value)| Ok((named(name)?, value)));
        let inputs = inputs.collect::<Result<Vec<_>, SenseError>>()?;
        let outputs = outputs.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        self.model.run(inputs, &outputs, Some(options)).map_err(|error| failure(&error))
    }
}

/// The numbers of an output.
pub(crate) fn numbers(output: Value) -> Result<Vec<f32>, SenseError> {
    let tensor: Result<Tensor<f32>, _> = output.try_into();
    tensor.map(|tensor| tensor.to_vec()).map_err(|_| failed("the model gave no numbers"))
}

fn failure(error: &dyn std::error::Error) -> SenseError {
    failed(format!("the model failed: {error}"))
}

/// The operators that the voice models use. Others are not linked into the program.
fn operators() -> OpRegistry {
    op_registry!(
        Add,
        ArgMax,
        Cast,
        Clip,
        Concat,
        ConstantOfShape,
        Conv,
        Cos,
        CumSum,
        DequantizeLinear,
        Div,
        DynamicQuantizeLinear,
        Equal,
        Erf,
        Exp,
        Expand,
        Gather,
        Gelu,
        Gemm,
        Greater,
        GreaterOrEqual,
        Identity,
        If,
        InstanceNormalization,
        LayerNormalization,
        LeakyRelu,
        Log,
        MatMul,
        MatMulInteger,
        Max,
        MaxPool,
        Mul,
        Neg,
        Pad,
        Pow,
        Range,
        ReduceMax,
        ReduceMean,
        ReduceSum,
        Relu,
        Reshape,
        Round,
        Shape,
        Sigmoid,
        Sin,
        Slice,
        Softmax,
        Split,
        Sqrt,
        Squeeze,
        Sub,
        Tanh,
        Tile,
        Transpose,
        Trilu,
        Unsqueeze,
        Where
    )
}
